package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

// A flag and a short form mean the same in every command, by each name that the program is called by.
func TestEachFlagHasOneMeaning(t *testing.T) {
	for _, program := range []string{"swdt", "kubectl-swdt"} {
		a := &app{env: Environment{Program: program}.complete()}
		first, letters := map[string]flagUse{}, map[string]flagUse{}
		uses := flagUses(a.rootCommand())
		if len(uses) < 400 {
			t.Fatalf("%s has only %d flags: the test does not look at them any more", program, len(uses))
		}
		for _, use := range uses {
			f := use.flag
			if one, ok := first[f.Name]; !ok {
				first[f.Name] = use
			} else if why := secondMeaning(one, use); why != "" {
				t.Errorf("%s: --%s of %q and of %q: %s:\n  %s\n  %s", program, f.Name, one.command, use.command, why,
					one.flag.Usage, f.Usage)
			}
			if f.Shorthand == "" || f.Shorthand == "f" { // -f is --follow or --filename, as in kubectl
				continue
			}
			if one, ok := letters[f.Shorthand]; !ok {
				letters[f.Shorthand] = use
			} else if one.flag.Name != f.Name {
				t.Errorf("%s: -%s is --%s of %q and --%s of %q", program, f.Shorthand, one.flag.Name, one.command, f.Name,
					use.command)
			}
		}
		for name := range meanings() {
			if _, ok := first[name]; !ok {
				t.Errorf("%s: no command has --%s, of which meanings says what it means", program, name)
			}
		}
	}
}

// The walk of TestEachFlagHasOneMeaning notices a second meaning.
func TestSecondMeaning(t *testing.T) {
	uses := map[string]flagUse{}
	for _, use := range flagUses((&app{env: Environment{}.complete()}).rootCommand()) {
		uses[use.command+" --"+use.flag.Name] = use
	}
	changed := func(name string, change func(*flag)) flagUse {
		use := uses[name]
		f := *use.flag
		change(&f)
		return flagUse{use.command, &f}
	}
	for what, other := range map[string]flagUse{
		"a switch":         changed("vm start --wait", func(f *flag) { f.Name = "timeout" }),
		"another letter":   changed("reset --yes", func(f *flag) { f.Shorthand = "j" }),
		"other words":      changed("logs --grep", func(f *flag) { f.Usage = "print lines with `text`" }),
		"unregistered":     changed("push --drain-timeout", func(f *flag) { f.Usage = "how many drains" }),
		"the same":         uses["logs --grep"],
		"the same meaning": uses["events --grep"],
	} {
		one := map[string]string{"a switch": " --timeout", "another letter": "down --yes", "unregistered": "join --drain-timeout"}[what]
		if one == "" {
			one = "logs --grep"
		}
		want := !strings.HasPrefix(what, "the same")
		if got := secondMeaning(uses[one], other); (got != "") != want {
			t.Errorf("%s: %q, want a second meaning: %v", what, got, want)
		}
	}
}

// Each former spelling of a flag sets the flag that has the new name.
func TestFormerFlagsSetTheNewOnes(t *testing.T) {
	for _, f := range FormerFlags() {
		a := &app{env: Environment{}.complete()}
		root := a.rootCommand()
		cmd, _, err := root.Find(strings.Fields(f.Command))
		if err != nil {
			t.Fatal(err)
		}
		value := map[string]string{"wait": "7m0s", viaName: "api", "tolerance": "7", "port": "7", "w": "true",
			"kube-proxy": "true"}[strings.TrimLeft(f.Former, "-")]
		if value == "" {
			value = "text"
		}
		now := cmd.Flags().Lookup(f.Name)
		if err := cmd.Flags().Set(strings.TrimLeft(f.Former, "-"), value); err != nil {
			t.Errorf("%s %s: %v", f.Command, f.Former, err)
		}
		if got := strings.Trim(now.Value.String(), "[]"); got != value || !now.Changed {
			t.Errorf("%s %s %s sets --%s to %q", f.Command, f.Former, value, f.Name, got)
		}
		if len(a.former) != 1 || !strings.Contains(a.former[0], "--"+f.Name+" now") {
			t.Errorf("%s %s: warnings %q", f.Command, f.Former, a.former)
		}
		if !cmd.Flags().Lookup(strings.TrimLeft(f.Former, "-")).Hidden || now.Hidden {
			t.Errorf("%s: %s is not hidden, or --%s is", f.Command, f.Former, f.Name)
		}
	}
}

// A former spelling warns on stderr, once, and leaves the result on stdout as it is.
func TestFormerFlagsWarnOnce(t *testing.T) {
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = Run(context.Background(), ui.Streams{In: strings.NewReader("[]"), Out: &out, Err: &errs}, args, Environment{})
		return code, out.String(), errs.String()
	}
	code, want, quiet := run("hns", "networks", "--dump", "-", "-o", "json")
	oldCode, got, warned := run("hns", "networks", "--from", "-", "-o", "json")
	if code != oldCode || got != want || quiet == warned {
		t.Errorf("--from: exit code %d, %q, %q; --dump: %d, %q, %q", oldCode, got, warned, code, want, quiet)
	}
	if n := strings.Count(warned, "--from of swdt hns networks is called --dump now"); n != 1 {
		t.Errorf("%d warnings: %q", n, warned)
	}
	_, stdout, warned := run("__complete", "hns", "networks", "--from", "-", "-o", "")
	if strings.Contains(warned, "is called") || !slices.Contains(strings.Split(stdout, "\n"), "json") {
		t.Errorf("a completion: %q, %q", stdout, warned)
	}
}
