package firstboot_test

import (
	"bytes"
	"crypto/rsa"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

var update = flag.Bool("update", false, "write the goldens anew")

// scripts returns options of all kinds, by the names of their goldens.
func scripts() map[string]firstboot.Options {
	return map[string]firstboot.Options{
		"2025":            {OpenSSH: firstboot.BuiltIn, KeysFile: "authorized_keys"},
		"2022-capability": {OpenSSH: firstboot.Capability, KeysFile: "authorized_keys"},
		"2022-msi-golden": {
			OpenSSH: firstboot.Installer, OpenSSHFile: "openssh.msi", KeysFile: "authorized_keys",
			DriverFolder: "drivers", AgentFile: "guest-agent.msi", End: firstboot.ShutDown,
		},
		"2019-zip-generalize": {
			OpenSSH: firstboot.Archive, OpenSSHFile: "openssh.zip", KeysFile: "authorized_keys",
			End: firstboot.Generalize, SysprepFile: "sysprep.xml",
		},
		"2025-password": {OpenSSH: firstboot.BuiltIn, KeysFile: "authorized_keys",
			Seal: &rsa.PublicKey{N: new(big.Int).SetBytes(bytes.Repeat([]byte{0xc5}, 256)), E: 65537}},
		"windows-11": {OpenSSH: firstboot.Installer, OpenSSHFile: "openssh.msi", KeysFile: "authorized_keys",
			RemoveAccount: "swdt-setup"},
	}
}

func script(t testing.TB, o firstboot.Options) string {
	t.Helper()
	out, err := firstboot.Script(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestGoldens(t *testing.T) {
	for name, o := range scripts() {
		path := filepath.Join("testdata", name+".ps1")
		got := script(t, o)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-golden +written)\n%s", name, diff)
		}
	}
}

func TestStructure(t *testing.T) {
	for name, o := range scripts() {
		text := script(t, o)
		if at := strings.IndexFunc(text, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }); at >= 0 {
			t.Errorf("%s: the character %q, which Windows PowerShell would read in the machine's code page", name, text[at])
		}
		if err := balanced(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(text, "\t") || strings.Contains(text, "\r") {
			t.Errorf("%s has a tab or a carriage return", name)
		}
	}
}

// Every stage runs through Invoke-Stage, which marks its begin and its end; in the order
// of Stages; and the exit is marked last.
func TestEachStageIsMarked(t *testing.T) {
	run := regexp.MustCompile(`(?m)^Invoke-Stage '([a-z]+)' \$(?:true|false) \{$`)
	for name, o := range scripts() {
		text := script(t, o)
		var found []string
		for _, match := range run.FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		if diff := cmp.Diff(firstboot.Stages(o), found); diff != "" {
			t.Errorf("%s (-Stages +script)\n%s", name, diff)
		}
		for _, stage := range found {
			for _, state := range []firstboot.State{firstboot.Begun, firstboot.Passed, firstboot.Warned, firstboot.Failed} {
				line := fmt.Sprintf("SWDT stage=%s %s", stage, state)
				m, ok := firstboot.ParseMark(line)
				if !ok {
					t.Errorf("ParseMark does not read %q", line)
				}
				if m.Stage != stage || m.State != state {
					t.Errorf("ParseMark reads %q as %+v", line, m)
				}
				if !strings.Contains(text, "Send-Mark ('stage=' + $Name + ' "+string(state)) {
					t.Errorf("Invoke-Stage does not send %s", state)
				}
			}
		}
		last := text[strings.LastIndex(text, "Invoke-Stage "):]
		if strings.Count(last, "Send-Mark 'exit=0'") != 1 || strings.Count(last, "Send-Mark ('exit=1 ") != 1 {
			t.Errorf("%s: the exit is not marked behind the last stage", name)
		}
		if ends := strings.Index(text, "shutdown.exe"); ends < strings.Index(text, "'exit=0'") {
			t.Errorf("%s shuts down before the exit is marked", name)
		}
	}
}

// The parts of the script that have no stage in any script are forgotten ones.
func TestEveryPartIsUsed(t *testing.T) {
	entries, err := os.ReadDir("stages")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, o := range scripts() {
		all.WriteString(script(t, o))
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join("stages", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if len(content) == 0 || !strings.Contains(all.String(), string(content)) {
			t.Errorf("no script has %s", entry.Name())
		}
	}
}

func TestStagesOfReleases(t *testing.T) {
	all := scripts()
	for _, test := range []struct {
		name      string
		has, lack []string
	}{
		{"2025", []string{"openssh", "sshd", "keys", "firewall", "panther", "console"}, []string{"drivers", "agent",
			"hostkeys", "generalize"}},
		{"2022-msi-golden", []string{"drivers", "agent", "hostkeys"}, []string{"console", "generalize"}},
		{"2019-zip-generalize", []string{"hostkeys", "generalize"}, []string{"console"}},
	} {
		stages := firstboot.Stages(all[test.name])
		for _, stage := range test.has {
			if !slices.Contains(stages, stage) {
				t.Errorf("%s lacks %s: %q", test.name, stage, stages)
			}
		}
		for _, stage := range test.lack {
			if slices.Contains(stages, stage) {
				t.Errorf("%s has %s: %q", test.name, stage, stages)
			}
		}
	}
	// A golden image loses its host keys only when all else is done: a failed one is still
	// reachable.
	golden := script(t, all["2022-msi-golden"])
	if !strings.Contains(golden, "if ($swdtFailed.Count -eq 0) {\nInvoke-Stage 'hostkeys'") {
		t.Error("the host keys go although a stage failed")
	}
}

func TestCommand(t *testing.T) {
	command := firstboot.Command()
	if len(command) > 1024 {
		t.Errorf("the command has %d characters; FirstLogonCommands take 1024", len(command))
	}
	if strings.ContainsAny(command, "\"'`$%^&|<>()\n") {
		t.Errorf("%q needs quoting", command)
	}
	text, err := powershell.Decode(command[strings.LastIndexByte(command, ' ')+1:])
	if err != nil {
		t.Fatal(err)
	}
	if err := balanced(text); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text, "'"+firstboot.FileName+"'") || !strings.Contains(text, "GetDrives") {
		t.Errorf("the command does not look for the script: %s", text)
	}
	reported := regexp.MustCompile(`SWDT exit=[^']*`).FindString(text)
	m, ok := firstboot.ParseMark(reported)
	if !ok {
		t.Fatalf("a missing script is reported as %q, which is no mark", reported)
	}
	if m.State != firstboot.Exited || m.Code != 2 {
		t.Errorf("a missing script is reported as %+v, want exit code 2", m)
	}
}

// hostile are values that would end a string or start a command.
var hostile = []string{
	"'; calc; '", "’; calc; ’", "\n calc \n", "$(calc)", "`n", "a\"b", "a b", "..", "../x", `..\x`, "a/b", "x;y",
	"x&y", "\x00", "ä", "-x", ".", "",
	"'@\ncalc\n@'", "#", strings.Repeat("x", 100),
}

// A node file that another person wrote cannot bring a command into the script: values
// with anything but letters, digits, dots, _ and - are refused, and the script differs in
// the head alone.
func TestHostileValuesAreRefused(t *testing.T) {
	base := scripts()["2022-msi-golden"]
	base.RemoveAccount, base.End, base.SysprepFile = "swdt-setup", firstboot.Generalize, "sysprep.xml"
	for field, change := range map[string]func(*firstboot.Options, string){
		"OpenSSHFile":   func(o *firstboot.Options, v string) { o.OpenSSHFile = v },
		"KeysFile":      func(o *firstboot.Options, v string) { o.KeysFile = v },
		"DriverFolder":  func(o *firstboot.Options, v string) { o.DriverFolder = v },
		"AgentFile":     func(o *firstboot.Options, v string) { o.AgentFile = v },
		"RemoveAccount": func(o *firstboot.Options, v string) { o.RemoveAccount = v },
		"SysprepFile":   func(o *firstboot.Options, v string) { o.SysprepFile = v },
		"OpenSSH":       func(o *firstboot.Options, v string) { o.OpenSSH = firstboot.OpenSSH(v) },
		"End":           func(o *firstboot.Options, v string) { o.End = firstboot.End(v) },
	} {
		for _, value := range hostile {
			o := base
			change(&o, value)
			text, err := firstboot.Script(o)
			optional := value == "" && slices.Contains([]string{"DriverFolder", "AgentFile", "RemoveAccount", "End"}, field)
			if (err == nil) != optional || err != nil && text != nil {
				t.Errorf("%s %q: %v", field, value, err)
			}
		}
		o := base
		change(&o, "other-name")
		if field == "OpenSSH" || field == "End" {
			continue
		}
		head, rest, _ := strings.Cut(script(t, o), "\n\n")
		baseHead, baseRest, _ := strings.Cut(script(t, base), "\n\n")
		switch {
		case rest != baseRest:
			t.Errorf("%s changes the script below its head", field)
		case head == baseHead:
			t.Errorf("%s does not change the head", field)
		case strings.Count(head, "\n") != strings.Count(baseHead, "\n"):
			t.Errorf("%s changes the number of lines of the head", field)
		}
	}
	if _, err := firstboot.Script(firstboot.Options{OpenSSH: firstboot.BuiltIn, OpenSSHFile: "x.msi",
		KeysFile: "keys"}); err == nil {
		t.Error("a file that is never used was accepted")
	}
}

func FuzzScript(f *testing.F) {
	for _, value := range hostile {
		f.Add(value, value)
	}
	f.Add("openssh.msi", "keys")
	_, want, _ := strings.Cut(script(f, scripts()["windows-11"]), "\n\n")
	f.Fuzz(func(t *testing.T, file, keys string) {
		o := scripts()["windows-11"]
		o.OpenSSHFile, o.KeysFile = file, keys
		text, err := firstboot.Script(o)
		if err != nil {
			return
		}
		if err := balanced(string(text)); err != nil {
			t.Error(err)
		}
		if _, rest, _ := strings.Cut(string(text), "\n\n"); rest != want {
			t.Errorf("%q and %q change the script", file, keys)
		}
	})
}
