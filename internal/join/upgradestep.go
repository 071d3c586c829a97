package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/kubeletconfig"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// The printed names of the steps of an upgrade, besides those of a join.
const stepByHand = "set by hand"

const kubeadmName = "kubeadm"

// upgrade is the state that the steps of an upgrade share.
type upgrade struct {
	*joining
	programs *binaries
	from     string // kubelet's version on the node
	minor    int    // of the wanted version

	state *kubeletState
	came  []kubeletconfig.Change // the changes of config.yaml in the last transaction
}

// newPrograms replaces the programs of a node together with kubelet's configuration and arguments, in one transaction of
// package push.
type newPrograms struct{ *upgrade }

func (s *newPrograms) Name() string { return stepKubernetesFiles }

func (s *newPrograms) Plan(ctx context.Context) (plan.Change, error) {
	found, err := s.push(ctx, s.node, push.Options{DryRun: true}, s.options.Reporter)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	for _, c := range found.Components {
		if c.Action == push.ActionReplaced || c.Action == push.ActionCreated {
			parts = append(parts, strings.TrimSpace(c.Name+" "+versionsOf(c)))
		}
	}
	if len(parts) == 0 {
		return plan.Change{Summary: "kubelet " + s.from}, nil
	}
	return plan.Change{Needed: true, Summary: s.drains() + "replace " + strings.Join(parts, ", ") +
		", together with the kubelet config"}, nil
}

// Apply carries out the transaction. The new kubeadm is on the node then, and decides what config.yaml becomes.
func (s *newPrograms) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	found, err := s.push(ctx, s.node, push.Options{DryRun: true}, r)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := update(ctx, s.node, func(r *record) {
		for _, c := range found.Components {
			s.programs.note(r, c)
		}
	}); err != nil {
		return plan.Outcome{}, err
	}
	return s.exchange(ctx, s.node, false, r)
}

// newConfig gives kubelet the cluster's configuration and its arguments if no program differs.
type newConfig struct{ *upgrade }

func (s *newConfig) Name() string      { return stepKubeletConfig }
func (s *newConfig) Follows() []string { return []string{stepKubernetesFiles} }
func (s *newConfig) FollowUp() string  { return "" }

func (s *newConfig) Plan(ctx context.Context) (plan.Change, error) {
	s.state = nil // the transaction of newPrograms has changed it
	found, err := s.push(ctx, s.node, push.Options{DryRun: true}, s.options.Reporter)
	if err != nil {
		return plan.Change{}, err
	}
	expected, err := s.expect(ctx, s.node, found)
	if err != nil {
		return plan.Change{}, err
	}
	args, _, err := s.arguments(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	texts := changeTexts(expected)
	if args != nil {
		present, _ := kubeletWords(s.state.line)
		texts = append(texts, "kubelet's flags: "+argumentsChange("kubelet "+strings.Join(present, " "),
			"kubelet "+strings.Join(args, " ")))
	}
	if len(texts) == 0 {
		return plan.Change{Summary: "config.yaml is as the cluster has it"}, nil
	}
	drains := s.drains()
	if replaces(found) {
		drains = ""
	}
	return plan.Change{Needed: true, Summary: drains + shortened(texts), Detail: strings.Join(texts, "\n")}, nil
}

func (s *newConfig) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	_, err := s.exchange(ctx, s.node, true, r)
	return plan.Outcome{}, err
}

func (s *upgrade) drains() string {
	if s.options.Drain == nil {
		return ""
	}
	return "drain the node, "
}

func versionsOf(c *push.ComponentResult) string {
	if c.Version.Before == "" || c.Version.Wanted == "" || c.Version.Before == c.Version.Wanted {
		return c.Version.Wanted
	}
	return strings.TrimPrefix(c.Version.Before, "v") + " → " + strings.TrimPrefix(c.Version.Wanted, "v")
}

func changeTexts(all []kubeletconfig.Change) []string {
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.String()
	}
	return texts
}

// shortened joins the first texts to a line that fits on a terminal.
func shortened(texts []string) string {
	const most = 120
	line := texts[0]
	for i, text := range texts[1:] {
		if len(line)+len(text) > most {
			return fmt.Sprintf("%s and %d more", line, len(texts)-1-i)
		}
		line += ", " + text
	}
	return line
}

// exchange carries out the transaction, and reports the changes of config.yaml.
func (s *upgrade) exchange(ctx context.Context, n *node.Node, restart bool, r ui.Reporter) (plan.Outcome, error) {
	_, err := s.push(ctx, n, push.Options{
		Force: restart, Start: true, Cluster: s.options.Cluster, Drain: s.options.Drain,
		Companions: func(ctx context.Context, staged map[string]string) ([]push.Companion, error) {
			return s.newConfiguration(ctx, n, staged)
		},
	}, r)
	if _, back := errors.AsType[*push.RolledBackError](err); back { // it has the log of the kubelet that failed
		return plan.Outcome{}, err
	}
	if err != nil {
		return plan.Outcome{}, s.failed(ctx, n, stepKubernetesFiles, kubeletName, err)
	}
	if err := update(ctx, n, func(r *record) { r.dropRestart(kubeletName) }); err != nil { // it was restarted
		return plan.Outcome{}, err
	}
	if len(s.came) == 0 {
		return plan.Outcome{}, nil
	}
	return plan.Outcome{Message: shortened(changeTexts(s.came))}, nil
}

func replaces(found push.NodeResult) bool {
	return slices.ContainsFunc(found.Components, func(c *push.ComponentResult) bool {
		return c.Action == push.ActionReplaced || c.Action == push.ActionCreated
	})
}

// push compares the programs with those on the node and, unless o.DryRun is set, replaces them. With o.Force, it only
// restarts kubelet.
func (s *upgrade) push(ctx context.Context, n *node.Node, o push.Options, r ui.Reporter) (push.NodeResult, error) {
	doc, err := s.document(ctx, n)
	if err != nil {
		return push.NodeResult{}, err
	}
	if o.Force {
		o.Only = []string{kubeletName}
	}
	o.Sources, o.Depot, o.Holder, o.Locked = s.options.Sources, s.options.Depot, s.options.Holder, true
	return push.Push(ctx, n, doc, o, r)
}

// document returns a node file for package push, with the programs and kubelet's arguments.
func (s *upgrade) document(ctx context.Context, n *node.Node) (config.Document, error) {
	proxy, err := s.proxyPath(ctx, n)
	if err != nil {
		return config.Document{}, err
	}
	const wishes = 3 // of kubernetesFiles
	s.programs.wishes = s.programs.wishes[:wishes]
	if proxy != "" {
		s.programs.wishes = append(s.programs.wishes, s.kubeProxyWish())
	}
	doc, err := s.programs.document(ctx, n)
	if err != nil {
		return config.Document{}, err
	}
	args, _, err := s.arguments(ctx, n)
	if err != nil {
		return config.Document{}, err
	}
	doc.Node.Spec.Kubernetes.Join = s.spec.Join
	for i := range doc.Node.Spec.Kubernetes.Provisioners {
		switch p := &doc.Node.Spec.Kubernetes.Provisioners[i]; p.Name {
		case kubeletName:
			p.Args = args
		case kubeProxyName:
			p.Destination, p.Version = proxy, s.spec.Version
		}
	}
	return doc, nil
}

func inspectProxy() *agentv1.InspectRequest {
	return &agentv1.InspectRequest{Components: []*agentv1.InspectComponent{{
		Name: kubeProxyName, Service: kubeProxyName, Destination: kubeProxyExe,
	}}}
}

// expect returns the changes of config.yaml that the upgrade makes. If the node has the wanted kubeadm, that kubeadm
// decides; otherwise they are the expected ones, by the cluster's ConfigMap.
func (s *upgrade) expect(ctx context.Context, n *node.Node, found push.NodeResult) ([]kubeletconfig.Change, error) {
	is, err := s.look(ctx, n)
	if err != nil {
		return nil, err
	}
	present := slices.ContainsFunc(found.Components, func(c *push.ComponentResult) bool {
		return c.Name == kubeadmName && c.Action == push.ActionUnchanged
	})
	var wanted []byte
	if present {
		wanted, err = s.writtenBy(ctx, n, kubeadmExe)
	} else {
		wanted, err = s.foretold(ctx)
	}
	if err != nil {
		return nil, err
	}
	merged, err := is.merged(wanted)
	if err != nil {
		return nil, err
	}
	all, err := kubeletconfig.Changes(is.yaml, merged)
	if err != nil {
		return nil, fmt.Errorf("compare %s with the cluster's configuration: %w", kubeletYAML, err)
	}
	return slices.DeleteFunc(all, func(c kubeletconfig.Change) bool {
		// kubeadm adds the runtime's pipe, which the ConfigMap lacks.
		return c.Trivial() || !present && c.Field() == "containerRuntimeEndpoint"
	}), nil
}

// foretold returns the cluster's configuration with the changes that kubeadm makes on Windows (cmd/kubeadm/app/
// componentconfigs/kubelet_windows.go). A kubeadm may add fields, so the text is only for a plan.
func (s *upgrade) foretold(ctx context.Context) ([]byte, error) {
	is, err := s.options.Cluster.KubeletConfig(ctx)
	if err != nil {
		return nil, err
	}
	if !is.Exists {
		return nil, errors.New("read the cluster's kubelet configuration: there is no ConfigMap kubelet-config in " +
			"kube-system, which kubeadm upgrade needs; the cluster was not made by kubeadm, or it was deleted")
	}
	changes := []kubeletconfig.Change{{Path: []string{"resolvConf"}, After: ""}}
	all, err := kubeletconfig.Changes(nil, []byte(is.Content))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubelet configuration: %w", err)
	}
	for _, c := range all {
		path, _ := c.After.(string)
		switch c.Field() {
		case "staticPodPath", "authentication.x509.clientCAFile":
			if strings.HasPrefix(path, "/") {
				c.After = `C:` + strings.ReplaceAll(path, "/", `\`)
				changes = append(changes, c)
			}
		}
	}
	return kubeletconfig.Apply([]byte(is.Content), changes)
}

// newConfiguration returns the files that go with the new programs: config.yaml, and swdt's record of it.
func (s *upgrade) newConfiguration(ctx context.Context, n *node.Node, staged map[string]string) ([]push.Companion, error) {
	is, err := s.look(ctx, n)
	if err != nil {
		return nil, err
	}
	program := kubeadmExe
	if path := staged[kubeadmName]; path != "" {
		program = path
	}
	wanted, err := s.writtenBy(ctx, n, program)
	if err != nil {
		return nil, err
	}
	merged, err := is.merged(wanted)
	if err != nil {
		return nil, err
	}
	if s.came, err = kubeletconfig.Changes(is.yaml, merged); err != nil {
		return nil, err
	}
	s.came = slices.DeleteFunc(s.came, kubeletconfig.Change.Trivial)
	var companions []push.Companion
	if !bytes.Equal(is.yaml, merged) {
		companions = append(companions, push.Companion{Destination: kubeletYAML, Before: is.yaml, After: merged})
	}
	return s.newRecord(ctx, n, wanted, companions)
}

// newRecord adds swdt's record to the files. A transaction replaces files only, so a missing record is made first, with
// no content, which is as good as none.
func (s *upgrade) newRecord(ctx context.Context, n *node.Node, wanted []byte, companions []push.Companion) (
	[]push.Companion, error) {
	_, line, err := s.arguments(ctx, n)
	if err != nil {
		return nil, err
	}
	text, err := kubeletRecord{Config: string(wanted), CommandLine: line}.text()
	if err != nil || bytes.Equal(text, s.state.recordText) {
		return companions, err
	}
	if s.state.recordText == nil {
		if err := smallfile.Replace(ctx, n, layout.KubeletRecord, nil, ""); err != nil {
			return nil, err
		}
	}
	return append(companions, push.Companion{Destination: layout.KubeletRecord, Before: s.state.recordText, After: text}), nil
}

// writtenBy returns the config.yaml that a kubeadm on the node would write. It is a dry run, so that the transaction
// can replace the file together with kubelet.
func (s *upgrade) writtenBy(ctx context.Context, n *node.Node, kubeadm string) ([]byte, error) {
	var out, errOut bytes.Buffer
	code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{
		Path: kubeadm, Folder: v1alpha1.KubernetesFolder,
		Args:        []string{"upgrade", "node", "phase", "kubelet-config", "--dry-run", "--kubeconfig", kubeletConf},
		Environment: []string{"PATH=" + programPath, "KUBEADM_UPGRADE_DRYRUN_DIR=" + layout.KubeadmDryRun},
	}, command.Streams{Stdout: &out, Stderr: &errOut})
	if gone := removeTree(ctx, n, layout.KubeadmDryRun); err == nil {
		err = gone
	}
	if err != nil {
		return nil, fmt.Errorf("run kubeadm upgrade node phase kubelet-config: %w", err)
	}
	if code != 0 {
		return nil, &KubeadmError{ExitCode: code, Output: strings.TrimSpace(errOut.String())}
	}
	content := writtenConfig(out.Bytes())
	if len(content) == 0 {
		return nil, fmt.Errorf("run kubeadm upgrade node phase kubelet-config: kubeadm %s has printed no config.yaml: %.300s",
			s.spec.Version, out.String())
	}
	return content, nil
}
