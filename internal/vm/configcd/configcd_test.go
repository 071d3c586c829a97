package configcd_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/xml"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
)

const password = "Correct-Horse+7"

// key returns a line of authorized_keys.
func key(t testing.TB, comment string) string {
	t.Helper()
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))) + " " + comment
}

// supplies holds drivers and installers, as an ISO of virtio-win and a download do.
func supplies() fstest.MapFS {
	return fstest.MapFS{
		"drivers/NetKVM/2k22/amd64/netkvm.inf":   {Data: []byte("[Version]")},
		"drivers/NetKVM/2k22/amd64/netkvm.sys":   {Data: bytes.Repeat([]byte("MZ"), 5000)},
		"drivers/viostor/2k22/amd64/viostor.inf": {Data: []byte("[Version]")},
		"OpenSSH-Win64-v10.0.0.0.msi":            {Data: bytes.Repeat([]byte("msi"), 5000)},
		"OpenSSH-Win64.ZIP":                      {Data: []byte("zip")},
		"qemu-ga-x86_64.msi":                     {Data: []byte("agent")},
	}
}

func options(t testing.TB) configcd.Options {
	t.Helper()
	drivers, err := fs.Sub(supplies(), "drivers")
	if err != nil {
		t.Fatal(err)
	}
	return configcd.Options{
		Answer: answer.Options{
			Release: answer.Server2022, Core: true, Index: 1, Language: "en-US", ComputerName: "win-node-1",
			Password: answer.NewPassword(password),
		},
		Keys:    []string{key(t, "me@here")},
		Drivers: drivers,
		OpenSSH: configcd.File{FS: supplies(), Path: "OpenSSH-Win64-v10.0.0.0.msi"},
		Agent:   configcd.File{FS: supplies(), Path: "qemu-ga-x86_64.msi"},
		Time:    time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC),
	}
}

// private returns a folder as swdt makes them.
func private(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "machine")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// content returns the files of a CD, read by 7z.
func content(t *testing.T, o configcd.Options) map[string]string {
	t.Helper()
	iso := filepath.Join(private(t), "config.iso")
	if err := configcd.Write(iso, o); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("7z")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("%v; run scripts/install-test-deps.sh", err)
	case err != nil:
		t.Skip(err)
	}
	folder := t.TempDir()
	if out, err := exec.Command(program, "x", "-y", "-o"+folder, iso).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := map[string]string{}
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestContent(t *testing.T) {
	installation := []string{
		"Autounattend.xml", "authorized_keys", "drivers/NetKVM/2k22/amd64/netkvm.inf",
		"drivers/NetKVM/2k22/amd64/netkvm.sys",
		"drivers/viostor/2k22/amd64/viostor.inf", "guest-agent.msi", "openssh.msi", "swdt-first-logon.ps1",
	}
	for _, test := range []struct {
		name   string
		change func(*configcd.Options)
		want   []string
	}{
		{"installation", func(*configcd.Options) {}, installation},
		{"zip", func(o *configcd.Options) {
			o.OpenSSH.Path = "OpenSSH-Win64.ZIP"
			o.Drivers = nil
			o.Agent = configcd.File{}
		},
			[]string{"Autounattend.xml", "authorized_keys", "openssh.zip", "swdt-first-logon.ps1"}},
		{"generalize", func(o *configcd.Options) { o.End = firstboot.Generalize }, append(installation, "sysprep.xml")},
		{"first start", func(o *configcd.Options) {
			o.FirstStart, o.Answer.Index, o.Drivers, o.Agent, o.OpenSSH = true, 0, nil, configcd.File{}, configcd.File{}
		}, []string{"Unattend.xml", "authorized_keys", "swdt-first-logon.ps1"}},
		{"2025", func(o *configcd.Options) {
			o.Answer.Release, o.Drivers, o.Agent, o.OpenSSH = answer.Server2025, nil, configcd.File{}, configcd.File{}
		}, []string{"Autounattend.xml", "authorized_keys", "swdt-first-logon.ps1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := options(t)
			test.change(&o)
			files := content(t, o)
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(files))); diff != "" {
				t.Errorf("(-want +on the CD)\n%s", diff)
			}
			namesExist(t, files)
		})
	}
}

var (
	driverPath = regexp.MustCompile(`<Path>[C-G]:\\([^<]*)</Path>`)
	headFile   = regexp.MustCompile(`(?m)^\$swdt(?:OpenSSHFile|KeysFile|DriverFolder|AgentFile|SysprepFile) = '([^']+)'$`)
)

// namesExist holds that everything that the answer file and the script name is on the CD.
func namesExist(t *testing.T, files map[string]string) {
	t.Helper()
	answers := files["Autounattend.xml"] + files["Unattend.xml"]
	var named []string
	for _, match := range slices.Concat(driverPath.FindAllStringSubmatch(answers, -1),
		headFile.FindAllStringSubmatch(files[firstboot.FileName], -1)) {
		named = append(named, match[1])
	}
	if !slices.Contains(named, "authorized_keys") {
		t.Errorf("the script reads no keys: %q", named)
	}
	for _, name := range named {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(file string) bool {
			return file == name ||
				strings.HasPrefix(file, name+"/")
		}) {
			t.Errorf("the CD lacks %s", name)
		}
	}
	commands := commandLines(t, answers)
	if !slices.Equal(commands, []string{firstboot.Command()}) {
		t.Errorf("the first logon runs %q", commands)
	}
}

func commandLines(t *testing.T, file string) []string {
	t.Helper()
	var root struct {
		Lines []string `xml:"settings>component>FirstLogonCommands>SynchronousCommand>CommandLine"`
	}
	if err := xml.Unmarshal([]byte(file), &root); err != nil {
		t.Fatal(err)
	}
	return root.Lines
}

func TestTheWayToOpenSSH(t *testing.T) {
	for _, test := range []struct {
		release answer.Release
		file    string
		want    string
	}{
		{answer.Server2019, "", "Add-WindowsCapability"},
		{answer.Server2022, "", "Add-WindowsCapability"},
		{answer.Windows11, "", "Add-WindowsCapability"},
		{answer.Server2025, "", "this Windows has no OpenSSH server"},
		{answer.Server2019, "OpenSSH-Win64-v10.0.0.0.msi", "Install-Package $swdtOpenSSHFile"},
		{answer.Server2025, "OpenSSH-Win64.ZIP", "Expand-Archive"},
	} {
		o := options(t)
		o.Answer.Release, o.OpenSSH = test.release, configcd.File{}
		if test.file != "" {
			o.OpenSSH = configcd.File{FS: supplies(), Path: test.file}
		}
		script := content(t, o)[firstboot.FileName]
		if !strings.Contains(script, test.want) {
			t.Errorf("%s with %q: the script lacks %s", test.release, test.file, test.want)
		}
		removes := strings.Contains(script, "$swdtRemoveAccount = 'swdt-setup'")
		if removes != (test.release == answer.Windows11) {
			t.Errorf("%s: the script removes the account of the first start: %t", test.release, removes)
		}
	}
}

func TestTheSameOptionsGiveTheSameBytes(t *testing.T) {
	folder := private(t)
	var all [][]byte
	for n := range 2 {
		path := filepath.Join(folder, fmt.Sprint(n))
		if err := configcd.Write(path, options(t)); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("two CDs of the same options differ")
	}
}

func TestProblems(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(*configcd.Options)
	}{
		{"no public key", func(o *configcd.Options) { o.Keys = nil }},
		{"public key 1", func(o *configcd.Options) { o.Keys = []string{"-----BEGIN OPENSSH PRIVATE KEY-----"} }},
		{"public key 2", func(o *configcd.Options) { o.Keys = append(o.Keys, o.Keys[0]+"\n"+o.Keys[0]) }},
		{"options before the key", func(o *configcd.Options) { o.Keys[0] = `command="calc" ` + o.Keys[0] }},
		{"101 public keys", func(o *configcd.Options) { o.Keys = slices.Repeat(o.Keys, 101) }},
		{"not one line", func(o *configcd.Options) { o.Keys[0] += strings.Repeat("x", 20000) }},
		{"no .inf file", func(o *configcd.Options) { o.Drivers = fstest.MapFS{"readme.txt": {}} }},
		{"neither an MSI nor a zip", func(o *configcd.Options) { o.OpenSSH.Path = "openssh.exe" }},
		{"openssh.msi", func(o *configcd.Options) { o.OpenSSH.Path = "absent.msi" }},
		{"computer name", func(o *configcd.Options) { o.Answer.ComputerName = "" }},
		{"end \"explode\"", func(o *configcd.Options) { o.End = "explode" }},
		{"years 1900", func(o *configcd.Options) { o.Time = time.Time{} }},
	} {
		path := filepath.Join(private(t), "config.iso")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := options(t)
		test.change(&o)
		err := configcd.Write(path, o)
		if err == nil || !strings.Contains(err.Error(), test.reason) {
			t.Fatalf("error %v, want %q", err, test.reason)
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the error has the password", test.reason)
		}
		entries, _ := os.ReadDir(filepath.Dir(path))
		if len(entries) != 1 {
			t.Errorf("%s: %d files, want the old one alone", test.reason, len(entries))
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
			t.Errorf("%s: the old file is %q, %v", test.reason, text, err)
		}
	}
	err := configcd.Write(filepath.Join(private(t), "config.iso"), configcd.Options{})
	for _, want := range []string{"no public key", "release", "password"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of empty options lacks %q: %v", want, err)
		}
	}
}
