package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FormerFlag is a flag that was renamed. It keeps its former name for one release: hidden, and with a warning.
type FormerFlag struct {
	Command string // without the program's name
	Former  string // as it is typed, with dashes
	Name    string // without dashes
}

// FormerFlags returns the flags that were renamed.
func FormerFlags() []FormerFlag {
	return []FormerFlag{
		{"logs", "--via", "source"}, {"hcs exec", "--via", "method"}, {"hcs read", "--via", "method"},
		{"cluster check", "--wait", waitTimeout}, {"netpol run", "--wait", waitTimeout}, {"readiness run", "--wait", waitTimeout},
		{"scale run", "--wait", waitTimeout}, {"network install", "--wait", waitTimeout},
		{"network remove", "--wait", waitTimeout}, {"fleet uninstall", "--wait", waitTimeout},
		{"ps", "--pod", podPattern}, {"stats watch", "--pod", podPattern}, {"stats serve", "--pod", podPattern},
		{"ps", "-w", "watch"}, {"capture fetch", "--write", "out"}, {"capture vfp", "--port", "vfp-port"},
		{"e2e", "--build", "checkout"}, {"e2e list", "--build", "checkout"}, {"readiness run", "--build", "checkout"},
		{"hns networks", "--from", "dump"}, {"hns endpoints", "--from", "dump"}, {"hns loadbalancers", "--from", "dump"},
		{"hns namespaces", "--from", "dump"}, {"hns policies", "--from", "dump"}, {"hns graph", "--from", "dump"},
		{"up", "--from", "from-stage"}, {"sandbox up", "--kube-proxy", "with-kube-proxy"}, {"sandbox up", "--port", "ssh-port"},
		{"trace on", "--level", "containerd-level"}, {"network install", "--version", "release"},
		{"scale compare", "--tolerance", "tolerance-percent"},
	}
}

// addFormerFlags gives the flags of FormerFlags their former names, too.
func (a *app) addFormerFlags(root *cobra.Command) {
	for _, f := range FormerFlags() {
		cmd, _, err := root.Find(strings.Fields(f.Command))
		must(err)
		if f.Former == "--"+viaName {
			a.oldVia(cmd, f.Name)
		} else {
			a.oldFlag(cmd, f)
		}
	}
}

// viaName is the flag for the way to the nodes.
const viaName = "via"

// waitTimeout is the flag that bounds each wait of a command. --wait is a switch, as in kubectl.
const waitTimeout = "wait-timeout"

// podPattern is the flag that chooses pods by a regular expression. --pod is the exact name of one.
const podPattern = "pod-pattern"

// formerName is the value of a flag's former name. It sets the flag itself.
type formerName struct {
	of   *flag
	warn func()
}

func (f formerName) String() string {
	if f.of == nil { // pflag makes a zero value to compare with
		return ""
	}
	return f.of.Value.String()
}
func (f formerName) Type() string { return f.of.Value.Type() }
func (f formerName) Set(text string) error {
	f.warn()
	if err := f.of.Value.Set(text); err != nil {
		return err
	}
	f.of.Changed = true
	return nil
}

// oldFlag gives a flag of a command its former name, too.
func (a *app) oldFlag(cmd *cobra.Command, former FormerFlag) {
	f := cmd.Flags().Lookup(former.Name)
	old := &pflag.Flag{Name: strings.TrimLeft(former.Former, "-"), Hidden: true, NoOptDefVal: f.NoOptDefVal,
		Usage: "the former name of --" + former.Name}
	if !strings.HasPrefix(former.Former, "--") {
		old.Shorthand = old.Name
	}
	old.Value = formerName{of: f, warn: func() { a.oldSpelling(cmd, former.Former, "--"+former.Name) }}
	cmd.Flags().AddFlag(old)
}

// oldSpelling records that the user typed the former spelling of a flag.
func (a *app) oldSpelling(cmd *cobra.Command, former, now string) {
	a.former = append(a.former, fmt.Sprintf("%s of %s is called %s now; this release is the last that takes %s", former,
		cmd.CommandPath(), now, former))
}

// warnOfOldSpellings prints a warning for each former spelling that the user typed.
func (a *app) warnOfOldSpellings() {
	if len(a.former) == 0 {
		return
	}
	story := a.newStory()
	defer story.End()
	for _, text := range unique(a.former) {
		story.Node("").Warn("%s", text)
	}
}

// formerVia is the value of --via in a command whose own ways had that name. It takes the values of the global flag, which
// it hides, and, for one release, those ways.
type formerVia struct {
	global *viaFlag
	own    formerName
}

func (f formerVia) String() string {
	if f.global == nil { // pflag makes a zero value to compare with
		return ""
	}
	return f.global.String()
}
func (f formerVia) Type() string { return "way" }
func (f formerVia) Set(text string) error {
	if first, _, _ := strings.Cut(text, ","); first == viaKubernetes {
		return f.global.Set(text)
	}
	return f.own.Set(text)
}

// oldVia lets a command take, for one release, the values of its flag as values of --via, too.
func (a *app) oldVia(cmd *cobra.Command, name string) {
	own := formerName{of: cmd.Flags().Lookup(name), warn: func() { a.oldSpelling(cmd, "--via", "--"+name) }}
	cmd.Flags().AddFlag(&pflag.Flag{Name: viaName, Value: formerVia{&a.global.via, own}, Hidden: true,
		Usage: "the global --via, and the former name of --" + name})
	must(cmd.RegisterFlagCompletionFunc(viaName, completeVia))
}
