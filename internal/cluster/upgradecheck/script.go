package upgradecheck

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/format/kubeletargs"
)

// Script reads a script that starts kubelet or kube-proxy: PowerShell, cmd or sh. It finds gates, and flags that a
// version of the program has removed. A script has flags of other programs too, so a word counts only if no other
// program has it, or if the program's name precedes it on the same line. text begins at place's line.
func (r *Reader) Script(text string, place Place) {
	s := script{r: r, lines: strings.Split(text, "\n"), only: onlyProgram(text)}
	first := max(place.Line, 1)
	last := s.only
	for i, line := range s.lines {
		if isComment(line) || r.patterns.printed.MatchString(line) {
			continue
		}
		if found := lastProgram(line); found != "" {
			last = found
		}
		s.around, s.place = last, place
		if place.File != "" {
			s.place = place.at(first + i)
		}
		s.condition = s.conditionOf(i, first)
		s.read(line)
	}
}

// script is the reading of one script.
type script struct {
	r     *Reader
	lines []string
	only  kubesettings.Program // the only one of both programs that the script names; "": it names both, or none

	around    kubesettings.Program // the program that was named last
	place     Place
	condition string
}

// read reads one line.
func (s *script) read(line string) {
	before := len(s.r.Settings)
	if compared := s.r.patterns.comparison.FindStringIndex(line); compared != nil {
		line = line[:compared[0]] // what follows is looked for, and not set
	}
	named := strings.Contains(strings.ToLower(strings.ReplaceAll(line, "-", "")), "featuregates")
	names := namesIn(line)
	programs := slices.DeleteFunc(slices.Clone(names), func(n name) bool { return n.program == "" })
	for _, at := range s.r.patterns.pairs.FindAllStringSubmatchIndex(line, -1) {
		name, value := line[at[2]:at[3]], strings.ToLower(line[at[4]:at[5]])
		program := programs.before(at[2]).program
		if s.r.knows(name) || slices.Contains(olderGates(), name) {
			program = s.around
		} else if !named {
			continue
		}
		s.add(program, Setting{Kind: GateSetting, Name: name, Value: value})
	}
	for _, at := range s.r.patterns.flags.FindAllStringSubmatchIndex(line, -1) {
		name := line[at[2]:at[3]]
		program := names.before(at[2]).program // none behind kube-log-runner, which starts the program
		if slices.Contains(kubeletsOwn(), name) {
			program = kubesettings.Kubelet
		}
		if program != "" && s.r.wasRemoved(program, name) {
			s.add(program, Setting{Kind: FlagSetting, Name: name})
		}
	}
	if s.around == kubesettings.KubeProxy && s.r.patterns.config.MatchString(line) {
		s.r.ignore(before)
	}
}

func (s *script) add(p kubesettings.Program, found Setting) {
	if p == "" {
		return
	}
	found.Program, found.Form, found.Place, found.Condition = p, Script, s.place, s.condition
	s.r.add(found)
}

// conditionOf returns the condition that decides about a line, if it is about a version and opens the block just before
// the line, such as "if ($version -lt 1.27) {".
func (s *script) conditionOf(i, first int) string {
	for before := i - 1; before >= max(0, i-2); before-- {
		if s.r.patterns.condition.MatchString(s.lines[before]) {
			return fmt.Sprintf("the condition of line %d", first+before)
		}
		if strings.Contains(s.lines[before], "}") {
			return ""
		}
	}
	return ""
}

// knows reports whether any version in the table has the gate.
func (r *Reader) knows(gate string) bool {
	return r.table.Gate(gate, r.table.Newest()).Since > 0
}

// olderGates are gates that scripts for Windows set, and that were removed before the table begins.
func olderGates() []string {
	return []string{"CSIMigration", "DynamicKubeletConfig", "HyperVContainer", "IPv6DualStack", "WindowsEndpointSliceProxying",
		"WindowsGMSA", "WindowsHostProcessContainers", "WindowsRunAsUserName"}
}

// kubeletsOwn are removed flags that no other program has.
func kubeletsOwn() []string {
	return []string{"image-pull-progress-deadline", "keep-terminated-pod-volumes", "master-service-namespace",
		"non-masquerade-cidr", "pod-infra-container-image", "register-schedulable"}
}

// wasRemoved reports whether a version of the program has removed the flag.
func (r *Reader) wasRemoved(p kubesettings.Program, flag string) bool {
	now := r.table.Flag(p, flag, r.table.Newest())
	return !now.Known && (now.Since > 0 || p == kubesettings.Kubelet && kubeletargs.Gone(flag, r.table.Oldest()) ||
		p == kubesettings.KubeProxy && kubeProxyFlagGone(flag) > 0)
}

// patterns are the regular expressions of a Reader.
type patterns struct {
	values     *regexp.Regexp // the gates of --feature-gates: NAME=true and NAME=false
	pairs      *regexp.Regexp // gates in a script, such as "WinDSR=true", but no assignments such as $Done=$true and no flags
	flags      *regexp.Regexp // flags in a script
	config     *regexp.Regexp // the flag --config with a value
	comparison *regexp.Regexp // operators and methods of PowerShell that look for a text
	condition  *regexp.Regexp // a line that opens a block for some versions
	printed    *regexp.Regexp // lines that print a text
}

func compiled() patterns {
	return patterns{
		values:     regexp.MustCompile(`([A-Za-z][A-Za-z0-9]*)\s*=\s*((?i:true|false))\b`),
		pairs:      regexp.MustCompile("(?:^|[\\s\"'`,=(@])([A-Z][A-Za-z0-9]+)=((?i:true|false))\\b"),
		flags:      regexp.MustCompile("(?:^|[\\s\"'`,(@])--([a-z][a-z0-9-]+)"),
		config:     regexp.MustCompile(`--config[= ]`),
		comparison: regexp.MustCompile(`(?i)\s-(i|c)?(not)?(contains|match|like|eq|ne|replace|in)\s|\.contains\(`),
		condition:  regexp.MustCompile(`(?i)\b(if|elseif|elif)\b.*version`),
		printed:    regexp.MustCompile(`(?i)^\s*(write-\w+|throw|echo|printf)\b`),
	}
}

// onlyProgram returns the program if the text names one of the two alone.
func onlyProgram(text string) kubesettings.Program {
	text = strings.ToLower(text)
	kubelet, proxy := strings.Contains(text, "kubelet"), strings.Contains(text, "kube-proxy") || strings.Contains(text, "kubeproxy")
	switch {
	case kubelet && !proxy:
		return kubesettings.Kubelet
	case proxy && !kubelet:
		return kubesettings.KubeProxy
	}
	return ""
}

// lastProgram returns the program that a text names last; "" if it names none.
func lastProgram(text string) kubesettings.Program {
	last := kubesettings.Program("")
	for _, found := range namesIn(text) {
		if found.program != "" {
			last = found.program
		}
	}
	return last
}

// name is the name of a program on a line. program is "" for kube-log-runner.
type name struct {
	begin, end int
	program    kubesettings.Program
}

type names []name

// namesIn returns the names of programs on a line, in their order.
func namesIn(line string) (all names) {
	lower := lowerASCII(line)
	for _, known := range []struct {
		word    string
		program kubesettings.Program
	}{{"kubelet", kubesettings.Kubelet}, {"kube-proxy", kubesettings.KubeProxy}, {"kubeproxy", kubesettings.KubeProxy}, {"log-runner", ""}} {
		for from := 0; ; {
			at := strings.Index(lower[from:], known.word)
			if at < 0 {
				break
			}
			at += from
			from = at + len(known.word)
			all = append(all, name{at, from, known.program})
		}
	}
	slices.SortFunc(all, func(a, b name) int { return cmp.Compare(a.begin, b.begin) })
	return all
}

// before returns the last name that ends before a byte of the line.
func (n names) before(at int) name {
	i, _ := slices.BinarySearchFunc(n, at+1, func(one name, end int) int { return cmp.Compare(one.end, end) })
	if i == 0 {
		return name{}
	}
	return n[i-1]
}

// lowerASCII returns a text with its letters A to Z in lower case. It keeps the length, so that places stay.
func lowerASCII(text string) string {
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

func isComment(line string) bool {
	line = strings.ToLower(strings.TrimSpace(line))
	for _, mark := range []string{"#", "rem ", "::", "//"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}
