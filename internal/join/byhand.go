package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// byHand lists the settings of kubelet that neither swdt nor kubeadm has made. It changes nothing: the upgrade keeps
// them.
type byHand struct{ *upgrade }

func (s *byHand) Name() string { return stepByHand }

func (s *byHand) Plan(ctx context.Context) (plan.Change, error) {
	is, err := s.look(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	for _, c := range is.config {
		parts = append(parts, "config.yaml has "+c.Kept())
	}
	for _, name := range slices.Sorted(maps.Keys(is.flags)) {
		switch value := is.flags[name]; {
		case value == nil:
			parts = append(parts, "kubelet runs without --"+name)
		case is.gone[name]:
			parts = append(parts, fmt.Sprintf("kubelet %s has no flag --%s, so it goes", s.spec.Version, name))
		default:
			parts = append(parts, "kubelet runs with --"+name+"="+*value)
		}
	}
	for _, path := range is.dropIns {
		parts = append(parts, "kubelet reads "+path)
	}
	switch {
	case is.record.Config == "":
		parts = append(parts, "config.yaml: unknown, since swdt has no record of what kubeadm wrote; its differences go")
	case len(parts) == 0:
		parts = []string{"none"}
	}
	return plan.Change{Summary: strings.Join(parts, "; ")}, nil
}

func (s *byHand) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, nil
}

// kubeletState is kubelet's configuration on the node, and what of it was set by hand.
type kubeletState struct {
	record     kubeletRecord
	recordText []byte
	yaml       []byte // config.yaml
	line       string // the service's command line, without a trace

	config  []kubeletconfig.Change
	flags   map[string]*string // by name; nil: a flag was removed
	gone    map[string]bool    // those of flags that the wanted kubelet lacks
	dropIns []string           // paths
}

// look reads the state, once in each run.
func (s *upgrade) look(ctx context.Context, n *node.Node) (*kubeletState, error) {
	if s.state != nil {
		return s.state, nil
	}
	is := &kubeletState{flags: map[string]*string{}, gone: map[string]bool{}}
	var err error
	if is.record, is.recordText, err = loadKubeletRecord(ctx, n); err != nil {
		return nil, err
	}
	if is.yaml, err = smallfile.Read(ctx, n, kubeletYAML); err != nil {
		return nil, err
	}
	if is.record.Config != "" {
		if is.config, err = kubeletconfig.Changes([]byte(is.record.Config), is.yaml); err != nil {
			return nil, fmt.Errorf("compare %s with what kubeadm wrote: %w", kubeletYAML, err)
		}
	}
	if err := s.lookAtFlags(ctx, n, is); err != nil {
		return nil, err
	}
	if is.dropIns, err = otherDropIns(ctx, n); err != nil {
		return nil, err
	}
	s.state = is
	return is, nil
}

// lookAtFlags compares kubelet's flags with those that swdt registered. If that is not recorded, it compares them with
// those that swdt registers for the node's present version.
func (s *upgrade) lookAtFlags(ctx context.Context, n *node.Node, is *kubeletState) error {
	reply, err := service(ctx, n, kubeletName)
	if err != nil {
		return err
	}
	if reply == nil {
		return fmt.Errorf("the node has no service %s: run `swdt join`", kubeletName)
	}
	traced, err := traces(ctx, n)
	if err != nil {
		return err
	}
	is.line, _ = traced.CommandLine(kubeletName, reply.GetConfig().GetCommandLine())
	base := is.record.CommandLine
	if base == "" {
		before := *s.joining
		before.spec.Version = s.from
		wanted, err := before.wantedKubelet(ctx, n)
		if err != nil {
			return err
		}
		base = wanted.GetCommandLine()
	}
	ours, theirs := kubeletFlags(base), kubeletFlags(is.line)
	for name, value := range theirs {
		if before, ok := ours[name]; !ok || before != value {
			is.flags[name] = &value
			is.gone[name] = kubeletargs.Gone(name, s.minor)
		}
	}
	for name := range ours {
		if _, ok := theirs[name]; !ok {
			is.flags[name] = nil
		}
	}
	return nil
}

// kubeletWords returns kubelet's own arguments of a command line; ok is false if it does not run kubelet.
func kubeletWords(line string) (words []string, ok bool) {
	words = commandline.Split(line)
	i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, kubeletargs.KubeletExe) })
	if i < 0 {
		return nil, false
	}
	return words[i+1:], true
}

func kubeletFlags(line string) map[string]string {
	words, _ := kubeletWords(line)
	flags, _ := kubeletargs.Flags(words)
	return flags
}

// arguments returns the arguments for the wanted kubelet: those of swdt, with the flags that were set by hand. nil means
// that the present ones stay, since they are the same or the service does not run kubelet itself.
func (s *upgrade) arguments(ctx context.Context, n *node.Node) (args []string, record string, err error) {
	is, err := s.look(ctx, n)
	if err != nil {
		return nil, "", err
	}
	wanted, err := s.wantedKubelet(ctx, n)
	if err != nil {
		return nil, "", err
	}
	words, _ := kubeletWords(wanted.GetCommandLine())
	own := kubeletFlags(wanted.GetCommandLine())
	for _, word := range words {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch value, changed := is.flags[name]; {
		case !changed || is.gone[name]:
			args = append(args, word)
		case value != nil:
			args = append(args, "--"+name+"="+*value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is.flags)) {
		if _, ok := own[name]; !ok && is.flags[name] != nil && !is.gone[name] {
			args = append(args, "--"+name+"="+*is.flags[name])
		}
	}
	present, ok := kubeletWords(is.line)
	if !ok || slices.Equal(present, args) {
		args = nil
	}
	return args, wanted.GetCommandLine(), nil
}

// merged returns the configuration that kubelet gets: that of kubeadm, with what was set by hand.
func (is *kubeletState) merged(ofKubeadm []byte) ([]byte, error) {
	merged, err := kubeletconfig.Apply(ofKubeadm, is.config)
	if err != nil {
		return nil, fmt.Errorf("keep what was set by hand in %s: %w", kubeletYAML, err)
	}
	return merged, nil
}

// otherDropIns returns the drop-ins of kubelet that swdt has not written.
func otherDropIns(ctx context.Context, n *node.Node) (paths []string, err error) {
	list, err := n.Files.List(ctx, &agentv1.ListFilesRequest{Path: kubeletargs.ConfigFolder})
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", kubeletargs.ConfigFolder, err)
	}
	for _, entry := range list.GetEntries() {
		path := entry.GetPath()
		if strings.HasSuffix(strings.ToLower(path), ".conf") && !strings.EqualFold(path, kubeletargs.DropIn) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// writtenConfig returns the config.yaml that a dry run of kubeadm has printed; nil: none. Up to 1.30, kubeadm printed a
// tab before each line (cmd/kubeadm/app/util/dryrun/dryrun.go).
func writtenConfig(output []byte) []byte {
	var content bytes.Buffer
	inside := false
	for line := range bytes.Lines(output) {
		switch {
		case bytes.HasPrefix(line, []byte("[")):
			inside = bytes.HasPrefix(line, []byte("[dryrun] Would write file ")) &&
				bytes.Contains(line, []byte(`/config.yaml"`))
		case inside:
			content.Write(bytes.TrimPrefix(line, []byte("\t")))
		}
	}
	return content.Bytes()
}
