package configcd_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf16"

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
		"Autounattend.xml", "authorized_keys", "drivers/NetKVM/2k22/amd64/netkvm.inf", "drivers/NetKVM/2k22/amd64/netkvm.sys",
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
	for _, match := range slices.Concat(driverPath.FindAllStringSubmatch(answers, -1), headFile.FindAllStringSubmatch(files[firstboot.FileName], -1)) {
		named = append(named, match[1])
	}
	if !slices.Contains(named, "authorized_keys") {
		t.Errorf("the script reads no keys: %q", named)
	}
	for _, name := range named {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(file string) bool { return file == name || strings.HasPrefix(file, name+"/") }) {
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
		if removes := strings.Contains(script, "$swdtRemoveAccount = 'swdt-setup'"); removes != (test.release == answer.Windows11) {
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
		if err == nil || !strings.Contains(err.Error(), test.reason) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", test.reason, err)
		}
		entries, _ := os.ReadDir(filepath.Dir(path))
		if text, err := os.ReadFile(path); err != nil || string(text) != "old" || len(entries) != 1 {
			t.Errorf("%s: the old file is %q, %v, in %d files", test.reason, text, err, len(entries))
		}
	}
	err := configcd.Write(filepath.Join(private(t), "config.iso"), configcd.Options{})
	for _, want := range []string{"no public key", "release", "password"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of empty options lacks %q: %v", want, err)
		}
	}
}

// Another user of your machine can read the password neither from the file, nor from one
// that was there before, nor by a link that he has put there, nor while it is written;
// and cannot put another CD in its place.
func TestOtherUsersReadNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing on Windows")
	}
	folder := private(t)
	path := filepath.Join(folder, "config.iso")
	mode := func(name string) fs.FileMode {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	watched := options(t)
	var during []fs.FileMode
	watched.Agent = configcd.File{FS: hooked{supplies(), func() {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Error(err)
		}
		for _, entry := range entries {
			if entry.Name() != "config.iso" {
				during = append(during, mode(filepath.Join(folder, entry.Name())))
			}
		}
	}}, Path: "qemu-ga-x86_64.msi"}
	if err := configcd.Write(path, watched); err != nil {
		t.Fatal(err)
	}
	if got := mode(path); got != 0o600 {
		t.Errorf("the file's mode is %v", got)
	}
	if len(during) == 0 || slices.ContainsFunc(during, func(m fs.FileMode) bool { return m != 0o600 }) {
		t.Errorf("while it is written the modes are %v", during)
	}

	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, nil, 0o666), os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if err := configcd.Write(path, options(t)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) != 0 || mode(path) != 0o600 {
		t.Errorf("the link's target has %d bytes, %v; the file's mode is %v", len(text), err, mode(path))
	}

	for _, open := range []fs.FileMode{0o777, 0o1777, 0o770, 0o702} {
		if err := os.Chmod(folder, open); err != nil {
			t.Fatal(err)
		}
		if err := configcd.Write(path, options(t)); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("a folder of mode %o was accepted: %v", open, err)
		}
	}
}

// hooked calls a function when a file is opened to be copied, which Stat does not do.
type hooked struct {
	fstest.MapFS
	open func()
}

func (h hooked) Open(name string) (fs.File, error) {
	h.open()
	return h.MapFS.Open(name)
}

func TestWipe(t *testing.T) {
	folder := private(t)
	path := filepath.Join(folder, "config*[1].iso") // no pattern of other files
	if err := configcd.Write(path, options(t)); err != nil {
		t.Fatal(err)
	}
	bystander := filepath.Join(folder, "config2.iso")
	alias := filepath.Join(folder, "alias") // shows what became of the content
	killed := path + ".123.new"
	if err := errors.Join(os.WriteFile(bystander, []byte("other"), 0o600), os.Link(path, alias), os.WriteFile(killed, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(alias)
	if err != nil || !bytes.Contains(before, []byte("AdministratorPassword")) {
		t.Fatalf("no answer file in %d bytes, %v", len(before), err)
	}
	for range 2 { // the second finds nothing
		if err := configcd.Wipe(path); err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{path, killed} {
			if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there: %v", gone, err)
			}
		}
	}
	after, err := os.ReadFile(alias)
	if err != nil || len(after) != len(before) || bytes.ContainsFunc(after, func(r rune) bool { return r != 0 }) {
		t.Errorf("the content was not overwritten: %d of %d bytes, %v", len(after), len(before), err)
	}
	if text, err := os.ReadFile(bystander); err != nil || string(text) != "other" {
		t.Errorf("another file became %q, %v", text, err)
	}

	if err := os.Symlink(bystander, path); err != nil {
		t.Fatal(err)
	}
	if err := configcd.Wipe(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(bystander); err != nil || string(text) != "other" {
		t.Errorf("the target of a link became %q, %v", text, err)
	}
}

// A hostile node file gains no command in the guest, no other setting and no other key.
func TestHostileNodeFile(t *testing.T) {
	base := content(t, options(t))
	for _, comment := range []string{
		`"; calc; "`, `'; calc; '`, "$(calc)", "`calc`", "</unattend>", "]]>", "ssh-ed25519 AAAA other", "\t# x", "‘; calc; ’", "\x1b[2J", "%PATH%",
	} {
		o := options(t)
		o.Keys[0] = key(t, comment)
		files := content(t, o)
		for _, name := range slices.Sorted(maps.Keys(base)) {
			if name == "authorized_keys" {
				continue
			}
			if diff := cmp.Diff(base[name], files[name]); diff != "" {
				t.Errorf("the comment %q changes %s\n%s", comment, name, diff)
			}
		}
		lines := files["authorized_keys"]
		read, _, given, rest, err := ssh.ParseAuthorizedKey([]byte(lines))
		want, _, _, _, wantErr := ssh.ParseAuthorizedKey([]byte(key(t, "")))
		if err != nil || wantErr != nil || len(given) > 0 || len(rest) > 0 || !bytes.Equal(read.Marshal(), want.Marshal()) {
			t.Errorf("the comment %q makes other keys: %q", comment, lines)
		}
		if strings.Count(lines, "\n") != 1 || strings.ContainsFunc(lines, func(r rune) bool { return r > '~' || r < ' ' && r != '\n' }) {
			t.Errorf("the comment %q makes the line %q", comment, lines)
		}
	}
	for field, change := range map[string]func(*configcd.Options, string){
		"computer name": func(o *configcd.Options, v string) { o.Answer.ComputerName = v },
		"time zone":     func(o *configcd.Options, v string) { o.Answer.TimeZone = v },
		"language":      func(o *configcd.Options, v string) { o.Answer.Language = v },
		"keyboard":      func(o *configcd.Options, v string) { o.Answer.Keyboard = v },
		"productKey":    func(o *configcd.Options, v string) { o.Answer.ProductKey = v },
	} {
		for _, value := range []string{`a"b`, "a'b", "a\nb", "a<b/>", "a&calc", "a;calc", "$(calc)", "a\x00"} {
			o := options(t)
			change(&o, value)
			if err := configcd.Write(filepath.Join(private(t), "config.iso"), o); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("%s %q: %v", field, value, err)
			}
		}
	}

	// These are the caller's own, and no form limits them.
	o := options(t)
	o.Answer.DriverFolder = `C:\Users`
	o.Answer.FirstLogon = []answer.Command{{Line: "calc", Description: "x"}}
	if diff := cmp.Diff(base, content(t, o)); diff != "" {
		t.Errorf("answers that Write sets itself are taken from the options\n%s", diff)
	}
}

// The password is on the CD in the answer file alone, in its encoded form.
func TestWhereThePasswordIs(t *testing.T) {
	plain := []string{password, utf16Text(password)}
	for name, text := range content(t, options(t)) {
		for _, form := range plain {
			if strings.Contains(text, form) {
				t.Errorf("%s has the password as it is", name)
			}
		}
		encoded := strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(utf16Text(password+"AdministratorPassword"))))
		if encoded != (name == "Autounattend.xml") {
			t.Errorf("%s has the encoded password: %t", name, encoded)
		}
	}
}

func utf16Text(text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

func FuzzKeys(f *testing.F) {
	f.Add(key(f, "me"))
	f.Add(key(f, "'; calc; '"))
	f.Add(`command="x" ` + key(f, "me"))
	f.Add("# comment")
	f.Fuzz(func(t *testing.T, line string) {
		out, err := configcd.AuthorizedKeys([]string{line})
		if err != nil {
			return
		}
		_, _, given, rest, err := ssh.ParseAuthorizedKey(out)
		if err != nil || len(given) > 0 || len(rest) > 0 || bytes.Count(out, []byte("\n")) != 1 || bytes.ContainsFunc(out, func(r rune) bool { return r > '~' }) {
			t.Errorf("%q gives %q: %v", line, out, err)
		}
	})
}
