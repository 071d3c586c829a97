package configcd_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
)

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
	if text, err := os.ReadFile(target); err != nil || len(text) != 0 {
		t.Errorf("the link's target has %d bytes, %v; want none", len(text), err)
	}
	if got := mode(path); got != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", got)
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
	if err := errors.Join(os.WriteFile(bystander, []byte("other"), 0o600), os.Link(path, alias),
		os.WriteFile(killed, []byte("half"), 0o600)); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(after, make([]byte, len(before))) {
		t.Errorf("the content of %d bytes was not overwritten: %d bytes are %q", len(before), len(after), after)
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
		`"; calc; "`, `'; calc; '`, "$(calc)", "`calc`", "</unattend>", "]]>", "ssh-ed25519 AAAA other", "\t# x",
		"‘; calc; ’", "\x1b[2J", "%PATH%",
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
		switch {
		case err != nil:
			t.Fatalf("the comment %q makes lines that are no key: %q: %v", comment, lines, err)
		case wantErr != nil:
			t.Fatal(wantErr)
		case len(given) > 0:
			t.Errorf("the comment %q adds options: %q", comment, given)
		case len(rest) > 0:
			t.Errorf("the comment %q adds lines: %q", comment, rest)
		case !bytes.Equal(read.Marshal(), want.Marshal()):
			t.Errorf("the comment %q makes another key: %q", comment, lines)
		}
		if strings.Count(lines, "\n") != 1 || strings.ContainsFunc(lines, func(r rune) bool {
			return r > '~' ||
				r < ' ' && r != '\n'
		}) {
			t.Errorf("the comment %q makes the line %q", comment, lines)
		}
	}
	for field, change := range map[string]func(*configcd.Options, string){
		"computer name": func(o *configcd.Options, v string) { o.Answer.ComputerName = v },
		"time zone":     func(o *configcd.Options, v string) { o.Answer.TimeZone = v },
		"language":      func(o *configcd.Options, v string) { o.Answer.Language = v },
		"productKey":    func(o *configcd.Options, v string) { o.Answer.ProductKey = v },
	} {
		for _, value := range []string{`a"b`, "a'b", "a\nb", "a<b/>", "a&calc", "a;calc", "$(calc)", "a\x00"} {
			o := options(t)
			change(&o, value)
			if err := configcd.Write(filepath.Join(private(t), "config.iso"), o); err == nil ||
				!strings.Contains(err.Error(), field) {
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
		form := base64.StdEncoding.EncodeToString([]byte(utf16Text(password + "AdministratorPassword")))
		encoded := strings.Contains(text, form)
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
		switch {
		case err != nil:
			t.Errorf("%q gives %q: %v", line, out, err)
		case len(given) > 0:
			t.Errorf("%q gives the options %q", line, given)
		case len(rest) > 0 || bytes.Count(out, []byte("\n")) != 1:
			t.Errorf("%q gives %q, want one line", line, out)
		case bytes.ContainsFunc(out, func(r rune) bool { return r > '~' }):
			t.Errorf("%q gives %q, want ASCII", line, out)
		}
	})
}
