package cli

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flag means the same in every command that has it: meanings says what, in words that each command's own text of the
// flag must fit. A test walks all commands.

// meaning is the text about a flag that holds for all commands.
type meaning struct {
	text  string
	words string // a regular expression that each command's text of the flag matches
}

// meanings has the meaning of each flag of which commands have different texts. For the others the text is the meaning.
func meanings() map[string]meaning {
	return map[string]meaning{
		"all":             {"take every one, not only the usual ones", "every"},
		"allow-reboot":    {"restart the node if the work needs it", "reboot|restart the node"},
		"api-server":      {"`HOST:PORT` at which nodes reach the API server", "(?i)`host:port` at which"},
		"case":            {"only these `cases`", "^only these .*`cases`"},
		"containerd":      {"`version` of containerd", "^`version` of containerd"},
		"drain":           {"evict the node's pods before it is changed", "evict"},
		"fail-on":         {"what makes the exit code 5", "exit code 5|end with 5"},
		FilenameFlag:      {"another name of --config, as in kubectl; where -f is --follow, write -c", "^another name of --config|^`file or folder` to read"},
		"filter":          {"only rows with this `text`", "^only rows with this `text`"},
		"fix":             {"change what is wrong", "^remove what is wrong|^remove the settings|^change the files"},
		"follow":          {"go on with what is new, until Ctrl-C", "^go on with new"},
		"for":             {"for how long, a `time` such as 30s", "`time`"},
		"force":           {"do it even if something speaks against it", "even if"},
		"grep":            {"only what matches this regular `expression` (RE2)", "^only .* that match this regular `expression`"},
		"image":           {"`image` of the pods that swdt makes", "^`image` of"},
		"interval":        {"`time` between two looks", "^`time` between two"},
		"ip":              {"only what has this `address`", "^only .*this `address`"},
		"namespace":       {"only objects of this `namespace`", "^only (pods|objects) of this `namespace`"},
		"kubernetes":      {"`version` of Kubernetes to upgrade to, or that a check is for", "^`version` (of Kubernetes )?to upgrade to|^`version` of Kubernetes that"},
		"keep":            {"keep what the command made for its work", "^keep "},
		"level":           {"only this `level` and worse", "^only this `level` and worse"},
		"linux-image":     {"`image` of the pods on Linux", "^`image` of .* on Linux|^`image` of the probes' server on Linux"},
		"listen":          {"`address` of this machine to listen at", "^`address`"},
		"mirror":          {"`URL or folder` that everything is downloaded from instead", "from instead"},
		"no-drain":        {"do not evict pods first", "^do not evict"},
		"only":            {"only these `names`", "^`name`s of the components|^(try|run) only these"},
		"out":             {"`file` or folder to write", "`(file|folder)`"},
		"pod":             {"only this pod, as `NAMESPACE/NAME`", "this pod, as `NAMESPACE/NAME`"},
		"pod-pattern":     {"only pods whose name matches this regular `expression`", "pods whose name matches this regular `expression`"},
		"pods":            {"`number` of pods", "`number`"},
		"port":            {"only packets from or to this `port`", "`port`"},
		"redact":          {"also redact text that matches this `pattern`", "^also redact text .* matches this `pattern`"},
		"save-facts":      {"write the facts to this `file`", "^write the facts .*to this `file`"},
		"shell":           {"the shell: powershell, pwsh, cmd, bash or a `path`", "powershell"},
		"since":           {"only what is from this `time` on", "^only .* from this `time` on"},
		"skip":            {"leave these out", "^leave out these|^no specs"},
		"skip-checks":     {"run the specs whatever the checks find", "whatever the checks"},
		"sort":            {"sort the table by this `column`", "^sort the table by this `column`"},
		sortByFlag:        {"sort rows by this `column`, or with -o json by a JSONPath; -COLUMN: the largest first", "^sort rows by this `column`"},
		"source":          {"the `source` that values or lines are read from", "^the `source`s? that"},
		"start":           {"start it, too", "^start "},
		"stdin":           {"send stdin to the program", "^send stdin"},
		"tail":            {"the last `N` of each; -1 for all", "^the last `N`"},
		"tty":             {"give the program your terminal", "your terminal"},
		"until":           {"only what is up to this `time`", "^only .* up to this `time`"},
		waitTimeout:       {"how long each wait may take", "how long"},
		"watch":           {"go on and show each change, until Ctrl-C", "until Ctrl-C"},
		"write":           {"write FILE, and trust it", "^write FILE"},
		"yes":             {"do not ask for confirmation", "ask"},
		"windows":         {"a `release` of Windows Server, such as ltsc2025", "^`release` of Windows Server"},
		"with-kube-proxy": {"a stand-in for kube-proxy on a simulated node", "stand-in"},
	}
}

// Flag is a flag of swdt, for the page of all flags.
type Flag struct {
	Name     string
	Short    string // one letter; "": none
	Value    string // what to write behind it; "": nothing, it is a switch
	Meaning  string
	Commands []string // without swdt; nil: every command has it
}

// Flags returns the flags of all commands, by their names.
func Flags() []Flag {
	a := &app{env: Environment{}.complete()}
	root := a.rootCommand()
	byName := map[string]*Flag{}
	for _, use := range flagUses(root) {
		value, usage := pflag.UnquoteUsage(use.flag)
		if m, ok := meanings()[use.flag.Name]; ok {
			value, usage = pflag.UnquoteUsage(&pflag.Flag{Value: use.flag.Value, Usage: m.text, NoOptDefVal: use.flag.NoOptDefVal})
		}
		f := byName[use.flag.Name]
		if f == nil {
			f = &Flag{Name: use.flag.Name, Short: use.flag.Shorthand, Value: value, Meaning: usage}
			byName[f.Name] = f
		}
		f.Short = cmp.Or(f.Short, use.flag.Shorthand)
		f.Commands = append(f.Commands, use.command)
	}
	root.PersistentFlags().VisitAll(func(f *flag) { byName[f.Name].Commands = nil })
	return slices.SortedFunc(maps.Values(deref(byName)), func(a, b Flag) int { return strings.Compare(a.Name, b.Name) })
}

func deref(all map[string]*Flag) map[string]Flag {
	values := map[string]Flag{}
	for name, f := range all {
		values[name] = *f
	}
	return values
}

// flagUse is a flag of one command.
type flagUse struct {
	command string // without the program's name; "": every command
	flag    *flag
}

// pathBelow returns the command without the program's name, which may be "kubectl swdt"; "": it is the program itself.
func pathBelow(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(cmd.CommandPath(), "kubectl "), " ")
	return path
}

// flagUses returns the flags of a command and of those below it that help lists, and the global ones.
func flagUses(cmd *cobra.Command) (all []flagUse) {
	path := pathBelow(cmd)
	add := func(f *flag) {
		if !f.Hidden || f.Name == FilenameFlag {
			all = append(all, flagUse{path, f})
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(add)
	if !cmd.HasParent() {
		cmd.PersistentFlags().VisitAll(add)
	}
	for _, child := range inReadingOrder(cmd.Commands()) {
		if !child.Hidden {
			all = append(all, flagUses(child)...)
		}
	}
	return all
}

// secondMeaning returns why two uses of a flag of the same name do not mean the same, or "".
func secondMeaning(one, other flagUse) string {
	isSwitch := func(f *flag) bool { return f.Value.Type() == "bool" }
	m, several := meanings()[one.flag.Name]
	switch {
	case isSwitch(one.flag) != isSwitch(other.flag):
		return "one is a switch, the other has a value"
	case one.flag.Shorthand != "" && other.flag.Shorthand != "" && one.flag.Shorthand != other.flag.Shorthand:
		return "their short forms differ"
	case one.flag.Usage == other.flag.Usage:
		return ""
	case !several:
		return "their texts differ, and meanings does not say what they have in common"
	}
	words := regexp.MustCompile(m.words)
	for _, use := range []flagUse{one, other} {
		if !words.MatchString(use.flag.Usage) {
			return "the text of " + use.command + " does not fit the meaning of the flag"
		}
	}
	return ""
}

// FilenameFlag is kubectl's other name of --config, with the short form -f.
const FilenameFlag = "filename"

// addFilename gives each command that reads node files -f, as kubectl has it, unless -f follows there. Help does not list
// it beside -c.
func (a *app) addFilename(cmd *cobra.Command) {
	reads := cmd.Annotations[usesNodes] != "" || cmd.Annotations[usesDocument] != ""
	if reads && cmd.Flags().ShorthandLookup("f") == nil {
		cmd.Flags().VarP((*fileList)(&a.global.config), FilenameFlag, "f", "another name of --config, as in kubectl; where -f "+
			"is --follow, write -c")
		must(cmd.MarkFlagFilename(FilenameFlag))
		must(cmd.Flags().MarkHidden(FilenameFlag))
	}
	for _, child := range cmd.Commands() {
		a.addFilename(child)
	}
}
