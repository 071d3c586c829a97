package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/sandbox"
)

type flag = pflag.Flag

// configVariable is the environment variable that names the node files if --config does not.
const configVariable = "SWDT_CONFIG"

// dryRunFlag is for the commands that canDryRun marks: they show what they would change.
const dryRunFlag = "dry-run"

// fileList is a flag for files. A value with commas is a list of files only if a part
// between commas is a file, and no file has the whole value as its name.
type fileList []string

func (f *fileList) String() string { return strings.Join(*f, " ") }
func (f *fileList) Type() string   { return "files" }
func (f *fileList) Set(value string) error {
	*f = append(*f, splitAtCommas(value)...)
	return nil
}

func splitAtCommas(value string) []string {
	parts := strings.Split(value, ",")
	found := func(file string) bool { return file == config.Stdin || exists(file) }
	if len(parts) == 1 || exists(value) || !slices.ContainsFunc(parts, found) {
		return []string{value}
	}
	return parts
}

// globalOptions are the flags that every command has.
type globalOptions struct {
	config   []string
	nodes    []string
	selector string
	output   string
	sortBy   string // of commands with columns
	timeout  time.Duration
	parallel int
	dryRun   bool
	verbose  bool
	logs     logFormat

	acceptNewHostKey bool
	knownHosts       string
	sshConfig        string

	via       viaFlag
	cluster   clusterOptions // of a command without flags of its own for it
	printRBAC bool
}

// logFormat is the format of the progress on stderr.
type logFormat string

func (f *logFormat) String() string { return string(*f) }
func (f *logFormat) Type() string   { return "text|json" }
func (f *logFormat) Set(value string) error {
	if value != "text" && value != "json" {
		return fmt.Errorf("%q is not a format: use text or json", value)
	}
	*f = logFormat(value)
	return nil
}

func (o *globalOptions) addFlags(flags *pflag.FlagSet, nodeShort string) {
	o.logs = "text"
	flags.SortFlags = false
	flags.VarP((*fileList)(&o.config), "config",
		"c", "node `file`, a folder of them, or - for stdin; several times, or with commas, for several (default $"+
			configVariable+", files separated as in PATH; else ./swdt.yaml, else config.yaml in $XDG_CONFIG_HOME/swdt, ~/.config/swdt or, on Windows, %AppData%\\swdt)")
	otherNames := "or, with no file, USER@HOST or a Host of ~/.ssh/config"
	if nodeShort == "" {
		otherNames = "else of the kubeconfig's cluster; or USER@HOST"
	}
	flags.StringSliceVarP(&o.nodes, nodeFlag, nodeShort, nil, "`name`s of the nodes to work on (default all): of the node file, "+
		otherNames+"; also --"+toFlag)
	flags.StringVarP(&o.selector, "selector", "l", "", "`labels` of the nodes to work on: k=v,k!=v,k,!k; with --via and "+
		"no node file those of the cluster, also k in (v,w), k notin (v)")
	flags.StringVarP(&o.output, "output", "o", "",
		"`format` of the result on stdout: text, wide, json, yaml, name, jsonpath=…, go-template=… or custom-columns=…, as far as the command "+
			"has it (default text)")
	flags.BoolVar(&o.dryRun, dryRunFlag, false, "show what would change and change nothing")
	flags.DurationVar(&o.timeout, "timeout", 0, "give up after this `time`, such as 5m (default never)")
	flags.IntVar(&o.parallel, "parallel", fleet.DefaultParallel, "how many nodes to work on at a time")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "print details on stderr")
	flags.Var(&o.logs, "log-format", "how progress is printed on stderr")
	flags.BoolVar(&o.acceptNewHostKey, "accept-new-host-key",
		false, "trust a node seen for the first time without asking; a changed key is refused all the same")
	flags.StringVar(&o.knownHosts, "known-hosts", "", "`file` of trusted host keys (default ~/.ssh/known_hosts)")
	flags.StringVar(&o.sshConfig, "ssh-config", "", "SSH client's configuration `file` (default ~/.ssh/config)")
	flags.Var(&o.via, viaName, "kubernetes: reach the nodes through their cluster, without SSH, also "+
		"without a node file; with settings as in kubernetes,image=NAME,keep: "+
		"kubeconfig=, context=, namespace=, image=, keep (the pod), shared (a namespace of others)")
	o.cluster.add(flags)
	flags.BoolVar(&o.printRBAC, "print-rbac", false, "print the role that the way through the cluster needs, and end")
}

func (o *globalOptions) validate() error {
	switch {
	case o.parallel < 1:
		return usagef("--parallel %d: use 1 or more", o.parallel)
	case o.timeout < 0:
		return usagef("--timeout %s: use a positive time, such as 5m", o.timeout)
	}
	return nil
}

// bounded returns ctx limited by --timeout.
func (o *globalOptions) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.timeout, &timeoutError{flag: o.timeout.String()})
}

// readsStdin reports whether the node file comes from stdin.
func (o *globalOptions) readsStdin() bool { return slices.Contains(o.config, config.Stdin) }

// sources returns the node files to read.
func (a *app) sources() ([]string, error) {
	if named := a.global.config; len(named) > 0 {
		if half := len(named) / 2; a.completing() && slices.Equal(named[:half], named[half:]) {
			named = named[:half] // a completion parses the flags twice
		}
		return named, nil
	}
	if named := a.env.Getenv(configVariable); named != "" {
		return splitFiles(named), nil
	}
	source, err := config.DefaultSource()
	switch {
	case source == "":
		return nil, offerSandbox(err)
	case err != nil:
		return nil, err
	case config.IsHere(source) && !a.onlyReads:
		return []string{source}, a.checkTrust(source)
	}
	return []string{source}, nil
}

// documentSources is like sources, for a command that needs the document of a cluster.
func (a *app) documentSources() ([]string, error) {
	sources, err := a.sources()
	if missing, ok := errors.AsType[*config.Error](err); ok && missing.Problems[0].File == "" {
		missing.Problems[0].Remedy = "name the file with the document of kind Cluster with --config, or write one with " +
			"`swdt cluster init --write`"
	}
	return sources, err
}

// splitFiles splits a list of files as this machine splits PATH: at : or, on Windows,
// at ;. A file that has such a character in its name is found, too.
func splitFiles(list string) (files []string) {
	parts := filepath.SplitList(list)
	for len(parts) > 0 {
		count := 1
		for n := len(parts); n > 1; n-- {
			if exists(strings.Join(parts[:n], string(filepath.ListSeparator))) {
				count = n
				break
			}
		}
		if file := strings.Join(parts[:count], string(filepath.ListSeparator)); file != "" {
			files = append(files, file)
		}
		parts = parts[count:]
	}
	return files
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// documents returns the nodes that the command works on.
func (a *app) documents() ([]config.Document, error) {
	documents, err := a.chosenDocuments()
	return documents, a.asTyped(err)
}

func (a *app) chosenDocuments() ([]config.Document, error) {
	if err := a.global.validate(); err != nil {
		return nil, err
	}
	a.implyCluster()
	if a.choosesInCluster() {
		return a.clusterDocuments()
	}
	if a.choosesByName() {
		return a.namedDocuments()
	}
	sources, err := a.sources()
	if err != nil {
		return nil, err
	}
	documents, err := config.Load(sources, a.streams.In)
	if err != nil {
		return nil, orEnded(err, sources)
	}
	a.loaded = len(documents)
	documents, err = config.Select(documents, a.global.nodes, a.global.selector)
	return a.applyVia(documents), err
}

// orEnded returns the error about an ended sandbox if one of the files belongs to one, else err.
func orEnded(err error, files []string) error {
	if ended := endedSandbox(files...); ended != nil {
		return usagef("%v", ended)
	}
	return err
}

// endedSandbox returns an error if one of the files belongs to a sandbox that has ended.
func endedSandbox(files ...string) error {
	for _, file := range files {
		if name := sandbox.Ended(file); name != "" {
			return fmt.Errorf("sandbox %s has ended; `swdt sandbox up --name %[1]s` makes it again", name)
		}
	}
	return nil
}

// completeGlobalFlags makes the shell complete the flags that have a known set of values.
func (a *app) completeGlobalFlags(root *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	// RegisterFlagCompletionFunc fails only for a flag that does not exist.
	must(root.RegisterFlagCompletionFunc("output", a.completeFormats))
	must(root.RegisterFlagCompletionFunc(viaName, completeVia))
	must(root.RegisterFlagCompletionFunc("context", a.global.cluster.completeContexts))
	must(root.RegisterFlagCompletionFunc("log-format", fixed("text", "json")))
	must(root.RegisterFlagCompletionFunc("node", listed(a.completeNodes)))
	for _, name := range []string{"config", "known-hosts", "ssh-config", "kubeconfig"} {
		must(root.MarkPersistentFlagFilename(name))
	}
}

// toIsNode makes --to another name of --node.
func toIsNode(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == toFlag {
		name = nodeFlag
	}
	return pflag.NormalizedName(name)
}

// must panics at an error that only a mistake in this package can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (a *app) completeNodes(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if path := pathBelow(cmd); strings.HasPrefix(path, "vm ") {
		return a.completeVMs(cmd, args, toComplete)
	} else if path == "cluster check" {
		return a.completeWindowsNodes(cmd, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	a.completed = cmd
	a.implyCluster()
	if a.choosesInCluster() {
		return a.completeClusterNodes(cmd, toComplete), cobra.ShellCompDirectiveNoFileComp
	}
	documents, err := a.documents()
	var names []string
	if !a.namesNodeFiles() && a.takesSSHNames() {
		names = beginningWith(ssh.Listed(a.sshOptions()), toComplete)
	}
	if err != nil {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	for _, document := range documents {
		if name := document.Node.Metadata.Name; strings.HasPrefix(name, toComplete) {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeComponents completes the provisioners of the selected nodes.
func (a *app) completeComponents(_ *cobra.Command, args []string, toComplete string) ([]string,
	cobra.ShellCompDirective) {
	documents, err := a.documents()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, document := range documents {
		for _, p := range document.Node.Spec.Kubernetes.Provisioners {
			if strings.HasPrefix(p.Name, toComplete) && !slices.Contains(args, p.Name) &&
				!slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeFormats completes the formats that the command has.
func (a *app) completeFormats(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var formats []string
	directive := cobra.ShellCompDirectiveNoFileComp
	declared, _ := outputOf(cmd)
	for _, format := range declared.all() {
		if name, template, _ := strings.Cut(format, "="); template != "" {
			format, directive = name+"=", directive|cobra.ShellCompDirectiveNoSpace
		}
		formats = append(formats, format)
	}
	return formats, directive
}
