package wrapper_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/format/wrapper"
)

// machine has parameters of services as service/name, variables as %NAME%, and files by path.
type machine map[string]string

func (m machine) get(key string) (string, bool) {
	value, ok := m[strings.ToLower(key)]
	return value, ok
}

func (m machine) Parameter(service, name string) (string, bool) { return m.get(service + "/" + name) }
func (m machine) Texts(service, name string) []string {
	value, _ := m.get(service + "/" + strings.TrimPrefix(name, `Parameters\`))
	return strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
}
func (m machine) Exists(path string) bool             { _, ok := m.get(path); return ok }
func (m machine) Variable(name string) (string, bool) { return m.get("%" + name + "%") }
func (m machine) ReadFile(path string) ([]byte, bool) {
	value, ok := m.get(path)
	return []byte(value), ok
}

func TestLook(t *testing.T) {
	for _, c := range []struct {
		name, line string
		machine    machine
		want       []string // arguments, the program first; nil: unknown
		wrappers   string
	}{
		{"native", `C:\k\kubelet.exe --windows-service --v=2`, nil,
			[]string{`C:\k\kubelet.exe`, "--windows-service", "--v=2"}, ""},
		{"a path with spaces and no quotes", `C:\Program Files\containerd\bin\containerd.exe --run-service`, nil,
			[]string{`C:\Program Files\containerd\bin\containerd.exe`, "--run-service"}, ""},
		{"a path with spaces and dots", `C:\k8s v1.31\my kubelet.exe --v 2`, nil,
			[]string{`C:\k8s v1.31\my kubelet.exe`, "--v", "2"}, ""},
		{"no extension", `C:\k\kubelet --v=2`, nil, []string{`C:\k\kubelet.exe`, "--v=2"}, ""},
		{"a variable", `%ProgramFiles%\containerd\containerd.exe`, machine{"%programfiles%": `C:\Program Files`},
			[]string{`C:\Program Files\containerd\containerd.exe`}, ""},
		{"an unknown variable", `%K%\kubelet.exe`, nil, nil, ""},
		{"no folder", `kubelet.exe`, nil, nil, ""},
		{"empty", ` `, nil, nil, ""},

		// kubernetes-sigs/sig-windows-tools hostprocess/PrepareNode.ps1, and what swdt join registers
		{"kube-log-runner", `"C:\k\kube-log-runner.exe" --log-file=C:/l/k.log "C:\k\kubelet.exe" --v=2`, nil,
			[]string{`C:\k\kubelet.exe`, "--v=2"}, "kube-log-runner.exe"},
		{"kube-log-runner with values of their own", `kube-log-runner -also-stdout -log-file C:\l -flush-interval 5s C:\k\kubelet.exe`,
			nil, []string{`C:\k\kubelet.exe`}, "kube-log-runner"},
		{"kube-log-runner and dashes", `C:\k\kube-log-runner.exe -redirect-stderr=false -- C:\k\kubelet.exe --x`, nil,
			[]string{`C:\k\kubelet.exe`, "--x"}, "kube-log-runner.exe"},

		// Siemens-Healthineers/K2s#2376, antrea-io/antrea#5857
		{"nssm", `C:\k\nssm.exe`, machine{"kubelet/application": `C:\k\kubelet.exe`, "kubelet/appparameters": `--v=2 --config="C:\a b"`},
			[]string{`C:\k\kubelet.exe`, "--v=2", `--config=C:\a b`}, "nssm.exe"},
		{"nssm, quoted, from Chocolatey", `"C:\ProgramData\chocolatey\lib\NSSM\tools\nssm.exe"`,
			machine{"kubelet/application": `"C:\Program Files\k\kubelet.exe"`},
			[]string{`C:\Program Files\k\kubelet.exe`}, "nssm.exe"},
		// The real nssm 2.24-101 under Wine: e2e/nssm_test.go. AppDirectory is the folder in which the program
		// runs, and not one in which it is looked for.
		{"nssm with a variable", `C:\nssm-2.24\win64\nssm.exe`, machine{"%k%": `D:\k`, "kubelet/application": `%K%\kubelet.exe`,
			"kubelet/appdirectory": `%K%`}, []string{`D:\k\kubelet.exe`}, "nssm.exe"},
		{"nssm with variables of its own", `C:\k\nssm.exe`, machine{"%k%": `D:\k`, "kubelet/application": `%K%\kubelet.exe`,
			"kubelet/appparameters": `--v=%V%`, "kubelet/appenvironmentextra": "K=C:\\k\nV=4"},
			[]string{`C:\k\kubelet.exe`, "--v=4"}, "nssm.exe"},
		{"nssm with its variables alone", `C:\k\nssm.exe`, machine{"%k%": `D:\k`, "kubelet/application": `%K%\kubelet.exe`,
			"kubelet/appenvironment": "V=4"}, nil, "nssm.exe"},
		{"variables of the service", `C:\k\nssm.exe`, machine{"kubelet/application": `%B%\kubelet.exe`,
			"kubelet/environment": "K=C:\\k", "kubelet/appenvironmentextra": "B=%K%\\bin"},
			[]string{`C:\k\bin\kubelet.exe`}, "nssm.exe"},
		{"a program beside nssm", `C:\k\nssm.exe`, machine{"kubelet/application": `kubelet`, "kubelet/appdirectory": `C:\other`,
			`c:\k\kubelet.exe`: "", `c:\other\kubelet.exe`: ""}, []string{`C:\k\kubelet.exe`}, "nssm.exe"},
		{"a program in the PATH", `C:\n\nssm.exe`, machine{"kubelet/application": `kubelet.exe`, "kubelet/appdirectory": `C:\other`,
			"%path%": `%SystemRoot%\system32;"C:\k"`, `c:\k\kubelet.exe`: "", `c:\other\kubelet.exe`: ""},
			[]string{`C:\k\kubelet.exe`}, "nssm.exe"},
		{"a program in a PATH of its own", `C:\n\nssm.exe`, machine{"kubelet/application": `kubelet.exe`,
			"%path%": `C:\old`, "kubelet/appenvironmentextra": `PATH=C:\k;%PATH%`, `c:\k\kubelet.exe`: "", `c:\old\kubelet.exe`: ""},
			[]string{`C:\k\kubelet.exe`}, "nssm.exe"},
		{"a program in AppDirectory", `C:\n\nssm.exe`, machine{"kubelet/application": `.\kubelet.exe`, "kubelet/appdirectory": `C:\k`,
			`c:\k\kubelet.exe`: ""}, nil, "nssm.exe"},
		{"a program below System32", `C:\n\nssm.exe`, machine{"kubelet/application": `..\..\k\kubelet.exe`, `c:\k\kubelet.exe`: ""},
			[]string{`C:\k\kubelet.exe`}, "nssm.exe"},
		{"nssm that runs kube-log-runner", `nssm64.exe`, machine{"kubelet/application": `C:\k\kube-log-runner.exe`,
			"kubelet/appparameters": `-log-file=x C:\k\kubelet.exe -v 4`},
			[]string{`C:\k\kubelet.exe`, "-v", "4"}, "nssm64.exe kube-log-runner.exe"},
		{"nssm without an application", `C:\k\nssm.exe`, nil, nil, "nssm.exe"},
		// kubernetes-sigs/image-builder ansible/windows/roles/kubernetes/tasks/nssm.yml
		{"nssm that runs a script", `C:\k\nssm.exe`, machine{"kubelet/application": `C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe`,
			"kubelet/appparameters": `-ExecutionPolicy Bypass -NoProfile C:\k\StartKubelet.ps1`}, nil, "nssm.exe powershell.exe"},
		{"srvany", `C:\rk\srvany.exe`, machine{"kubelet/application": `C:\k\kubelet.exe`}, []string{`C:\k\kubelet.exe`}, "srvany.exe"},

		// georgbuexel/kubernetes-cluster scripts/install_kube.ps1
		{"cmd", `cmd.exe /c "C:\k\kubelet.exe --v=2"`, nil, []string{`C:\k\kubelet.exe`, "--v=2"}, "cmd.exe"},
		{"cmd with a quoted program", `C:\Windows\system32\cmd.exe /C ""C:\Program Files\k\kubelet.exe" --a="b c""`, nil,
			[]string{`C:\Program Files\k\kubelet.exe`, "--a=b c"}, "cmd.exe"},
		{"cmd with only a quoted program", `cmd /c "C:\Program Files\k\kubelet.exe"`, nil, []string{`C:\Program Files\k\kubelet.exe`}, "cmd"},
		{"cmd with switches and redirections", `cmd.exe /d /s /c "C:\k\kubelet.exe --v=2 >> C:\l\k.log 2>&1"`, nil,
			[]string{`C:\k\kubelet.exe`, "--v=2"}, "cmd.exe"},
		{"cmd, redirected without quotes", `cmd /c C:\k\kubelet.exe --v=2 1>C:\l\k.log 2>"C:\l l\k.err" --x=^&`, nil,
			[]string{`C:\k\kubelet.exe`, "--v=2", "--x=&"}, "cmd"},
		{"cmd with a variable", `%ComSpec% /c C:\k\kubelet.exe`, machine{"%comspec%": `C:\Windows\system32\cmd.exe`},
			[]string{`C:\k\kubelet.exe`}, "cmd.exe"},
		{"cmd with several commands", `cmd /c "set A=b && C:\k\kubelet.exe"`, nil, nil, "cmd"},
		{"cmd with a batch file", `cmd /c C:\k\start.cmd`, nil, nil, "cmd start.cmd"},
		{"cmd without a command", `cmd.exe`, nil, nil, "cmd.exe"},

		// mtkennerly/shawl README
		{"shawl", `"C:\shawl.exe" run --name kubelet --restart-if-not 0 --log-as "a b" -- C:\k\kubelet.exe --v=2`, nil,
			[]string{`C:\k\kubelet.exe`, "--v=2"}, "shawl.exe"},
		{"shawl without a program", `shawl.exe run --name x`, nil, nil, "shawl.exe"},
		// aelassas/servy, the first versions and the later ones
		{"servy", `"C:\ProgramData\Servy\Servy.Service.exe" "C:\k\kubelet.exe" "--v=2 --x" "C:\k" "Normal"`, nil,
			[]string{`C:\k\kubelet.exe`, "--v=2", "--x"}, "Servy.Service.exe"},
		{"servy with a database", `"C:\ProgramData\Servy\Servy.Service.exe" "kubelet"`, nil, nil, "Servy.Service.exe"},

		// winsw/winsw examples and docs/xml-config-file.md
		{"WinSW", `"C:\svc\kube let.exe"`, machine{`c:\svc\kube let.xml`: `<service><id>kubelet</id>
			<executable>%BASE%\bin\kubelet.exe</executable><arguments>--v=2
			  --x="y"</arguments><logmode>rotate</logmode></service>`},
			[]string{`C:\svc\bin\kubelet.exe`, "--v=2", "--x=y"}, "kube let.exe"},
		{"WinSW, start arguments", `C:\svc\w.exe`, machine{`c:\svc\w.xml`: `<service><executable>C:\k\kubelet.exe</executable>
			<startarguments>run</startarguments><arguments>--v=2</arguments></service>`},
			[]string{`C:\k\kubelet.exe`, "run", "--v=2"}, "w.exe"},
		{"another program's XML", `C:\svc\w.exe --x`, machine{`c:\svc\w.xml`: `<configuration/>`}, []string{`C:\svc\w.exe`, "--x"}, ""},
		{"WinSW that finds its program", `C:\svc\w.exe`, machine{`c:\svc\w.xml`: `<service><executable>kubelet</executable></service>`},
			nil, "w.exe"},
		{"svchost", `C:\Windows\system32\svchost.exe -k netsvcs -p`, nil, nil, "svchost.exe"},
	} {
		got := wrapper.Look("kubelet", c.line, c.machine)
		if diff := cmp.Diff(c.want, commandline.Split(got.Line)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.name, got.Line, diff)
		}
		if names := strings.Join(got.Wrappers, " "); names != c.wrappers {
			t.Errorf("%s: the wrappers are %q, want %q", c.name, names, c.wrappers)
		}
		if (got.Unknown == "") != (c.want != nil) {
			t.Errorf("%s: unknown is %q", c.name, got.Unknown)
		}
	}
}

// nssm replaces the service's variables in the names of its files. It opens a relative file in its own working
// directory, not in AppDirectory: the real nssm 2.24-101 under Wine.
func TestLogsOfNSSM(t *testing.T) {
	got := wrapper.Look("kubelet", `C:\k\nssm.exe`, machine{"kubelet/application": `C:\k\kubelet.exe`,
		"kubelet/appdirectory": `%K%`, "kubelet/appenvironmentextra": `K=C:\k`, "kubelet/appstdout": `logs/out.log`,
		"kubelet/appstderr": `"%K%\err.log"`})
	if diff := cmp.Diff([]string{`C:\Windows\System32\logs\out.log`, `C:\k\err.log`}, got.Logs); diff != "" {
		t.Error(diff)
	}
}

// A log runner may be the wrapper that another wrapper starts.
func TestLogsOfALogRunner(t *testing.T) {
	for _, line := range []string{`-also-stdout --log-file=C:/l/k.log C:\k\kubelet.exe`, `-log-file C:/l/k.log -- C:\k\kubelet.exe --log-file=x`} {
		got := wrapper.Look("kubelet", `C:\k\nssm.exe`, machine{"kubelet/application": `C:\k\kube-log-runner.exe`,
			"kubelet/appparameters": line})
		if diff := cmp.Diff([]string{`C:/l/k.log`}, got.Logs); diff != "" || got.Program() != `C:\k\kubelet.exe` {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// A script starts a program in its own way, so its text is all that is known.
func TestTheTextOfAScript(t *testing.T) {
	m := machine{"kubelet/application": `powershell.exe`, "kubelet/appparameters": `-NoProfile -File "C:\k\StartKubelet.ps1"`,
		`c:\k\startkubelet.ps1`: `C:\k\kubelet.exe $args`}
	got := wrapper.Look("kubelet", `C:\k\nssm.exe`, m)
	if got.Script != `C:\k\kubelet.exe $args` || !strings.Contains(got.Unknown, `C:\k\StartKubelet.ps1`) {
		t.Errorf("%+v", got)
	}
}

// Whatever a registry has, Look ends, and what it finds is a command line whose program is absolute.
func FuzzLook(f *testing.F) {
	f.Add(`cmd /s /c "a > b"`, `x`, `<service><executable>C:\a</executable></service>`)
	f.Add(`C:\nssm.exe`, `C:\cmd.exe`, `/c "`)
	f.Fuzz(func(t *testing.T, line, application, parameters string) {
		m := machine{"s/application": application, "s/appparameters": parameters, `c:\w.xml`: parameters, "%a%": "%a%"}
		got := wrapper.Look("s", line, m)
		if (got.Line == "") != (got.Unknown != "") || got.Line != "" && len(got.Program()) < 3 {
			t.Errorf("%+v", got)
		}
	})
}
