package disc_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/disc"
)

var stamp = time.Date(2026, 11, 23, 5, 30, 1, 0, time.UTC)

// contents is a tree with long names, names of other scripts, an empty file, one that ends with a sector, and folders as deep as allowed.
func contents() map[string]string {
	files := map[string]string{
		"Autounattend.xml":                          "<unattend/>",
		"swdt-first-logon.ps1":                      "exit 0",
		"empty":                                     "",
		"sector.bin":                                strings.Repeat("s", 2048),
		"two.bin":                                   strings.Repeat("t", 2049),
		"large.bin":                                 strings.Repeat("0123456789abcdef", 40000),
		"no.dots.but.three.text":                    "dots",
		".hidden":                                   "hidden",
		"with space, and (more)":                    "space",
		"ä-Ö-ß.txt":                                 "latin",
		"日本語/ファイル名.inf":                             "kanji",
		"drivers/NetKVM/2k22/amd64/netkvm.inf":      "[Version]",
		"drivers/NetKVM/2k22/amd64/netkvm.sys":      "MZ",
		"drivers/viostor/2k22/amd64/viostor.inf":    "[Version]",
		"one/two/three/four/five/six/seven/deepest": "deep",
		strings.Repeat("n", 60) + ".txt":            "64 characters",
		strings.Repeat("я", 64):                     "64 characters of two bytes",
	}
	for n := range 120 { // a folder of several sectors
		files[fmt.Sprintf("many/OpenSSH-Win64-file-%03d.dll", n)] = fmt.Sprint(n)
	}
	return files
}

func image(t *testing.T, files map[string]string) *disc.Image {
	t.Helper()
	i, err := disc.New("SWDT_CONFIG", stamp)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := i.Add(name, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

func written(t *testing.T, i *disc.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.iso")
	var out bytes.Buffer
	n, err := i.WriteTo(&out)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(out.Len()) || n%2048 != 0 {
		t.Errorf("WriteTo reports %d bytes, and wrote %d", n, out.Len())
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a program of scripts/install-test-deps.sh. A run of CI must have it.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("%v; run scripts/install-test-deps.sh", err)
	case err != nil:
		t.Skip(err)
	}
	command := exec.Command(path, args...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// read returns the files below a folder of this machine.
func read(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSevenZipReadsJoliet(t *testing.T) {
	iso, folder := written(t, image(t, contents())), t.TempDir()
	out := run(t, "7z", "x", "-y", "-o"+folder, iso)
	if strings.Contains(out, "WARNING") || strings.Contains(out, "ERROR") {
		t.Errorf("7z complains:\n%s", out)
	}
	if diff := cmp.Diff(contents(), read(t, folder)); diff != "" {
		t.Errorf("(-put +read by 7z)\n%s", diff)
	}
}

func TestXorrisoReadsJolietAndAnEmptyPrimaryTree(t *testing.T) {
	iso := written(t, image(t, contents()))
	folder := t.TempDir()
	out := run(t, "xorriso", "-abort_on", "WARNING", "-read_fs", "norock", "-indev", iso, "-osirrox", "on",
		"-extract", "/", folder)
	run(t, "chmod", "-R", "u+w", folder)
	if diff := cmp.Diff(contents(), read(t, folder)); diff != "" {
		t.Errorf("(-put +read by xorriso from Joliet)\n%s\n%s", diff, out)
	}

	listing := run(t, "xorriso", "-abort_on", "WARNING", "-read_fs", "nojoliet", "-indev", iso, "-find", "/")
	if !strings.HasSuffix(strings.TrimSpace(listing), "\n'/'") {
		t.Errorf("the tree of ISO 9660 is not empty:\n%s", listing)
	}
}

func TestIsoinfo(t *testing.T) {
	iso := written(t, image(t, contents()))
	header := run(t, "isoinfo", "-d", "-i", iso)
	for _, want := range []string{"Volume id: SWDT_CONFIG", "Joliet with UCS level 3 found",
		"Logical block size is: 2048"} {
		if !strings.Contains(header, want) {
			t.Errorf("isoinfo -d lacks %q:\n%s", want, header)
		}
	}
	joliet := strings.Split(strings.TrimSpace(run(t, "isoinfo", "-J", "-f", "-i", iso)), "\n")
	for name := range contents() {
		ascii := strings.IndexFunc(name, func(r rune) bool { return r > '~' }) < 0 // isoinfo prints no other
		if ascii && !slices.Contains(joliet, "/"+name) {
			t.Errorf("isoinfo -J lacks %q:\n%s", name, strings.Join(joliet, "\n"))
		}
	}
	if got := run(t, "isoinfo", "-J", "-x", "/Autounattend.xml", "-i", iso); got != "<unattend/>" {
		t.Errorf("Autounattend.xml: %q", got)
	}
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	sum := func(i *disc.Image) [32]byte {
		var out bytes.Buffer
		if _, err := i.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(out.Bytes())
	}
	first := sum(image(t, contents()))
	backwards, err := disc.New("SWDT_CONFIG", stamp.In(time.FixedZone("east", 3600)))
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(contents()))
	slices.Reverse(names)
	for _, name := range names {
		if err := backwards.Add(name, []byte(contents()[name])); err != nil {
			t.Fatal(err)
		}
	}
	if first != sum(backwards) {
		t.Error("the order of Add changes the image")
	}
	later, err := disc.New("SWDT_CONFIG", stamp.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := later.AddFS(".", filesOf(contents())); err != nil {
		t.Fatal(err)
	}
	if first == sum(later) {
		t.Error("the time is not in the image")
	}
}

func filesOf(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, content := range files {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

func TestFilesOfAFileSystem(t *testing.T) {
	i := image(t, nil)
	if err := i.AddFS("drivers", filesOf(contents())); err == nil {
		t.Error("a path of eight folders was accepted")
	}
	i = image(t, nil)
	shallow := maps.Clone(contents())
	delete(shallow, "one/two/three/four/five/six/seven/deepest")
	if err := i.AddFS("drivers", filesOf(shallow)); err != nil {
		t.Fatal(err)
	}
	if !i.Has("drivers/Drivers/netkvm/2K22/amd64/netkvm.inf") || i.Has("drivers/absent") {
		t.Error("Has does not know the files")
	}
	folder := t.TempDir()
	run(t, "7z", "x", "-y", "-o"+folder, written(t, i))
	if diff := cmp.Diff(shallow, read(t, filepath.Join(folder, "drivers"))); diff != "" {
		t.Errorf("(-put +read)\n%s", diff)
	}
}

func TestRefusedNames(t *testing.T) {
	for _, test := range []struct{ name, reason string }{
		{strings.Repeat("n", 65), "65 characters"},
		{"drivers/" + strings.Repeat("ж", 65) + "/x.inf", "65 characters"},
		{"a*b", `'*'`}, {"a?b", `'?'`}, {"a:b", `':'`}, {`a\b`, `'\\'`}, {"a;1", `';'`},
		{"a<b", `'<'`}, {"a|b", `'|'`}, {`a"b`, `'"'`},
		{"a\nb", "control character"}, {"a\x00b", "control character"},
		{"", "no name"}, {"..", "no name"}, {"a/../b", "no name"}, {"/a", "no name"}, {"a//b", "no name"}, {"a/",
			"no name"}, {"./a", "no name"},
		{"a.", "dot or a space"}, {"a ", "dot or a space"}, {"folder./a", "dot or a space"},
		{"\U0001f600", "UCS-2"}, {"a\xff", "UTF-8"},
		{"1/2/3/4/5/6/7/8/file", "8 folders deep"},
		{strings.Repeat(strings.Repeat("n", 60)+"/", 4) + "x", "more than 240 characters"},
	} {
		err := image(t, nil).Add(test.name, []byte("content"))
		if err == nil {
			t.Errorf("%q was accepted", test.name)
			continue
		}
		if !strings.Contains(err.Error(), test.reason) || test.name != "" && !namesAPart(err.Error(), test.name) {
			t.Errorf("%q: %v; it lacks the name, or %q", test.name, err, test.reason)
		}
	}
}

// namesAPart reports whether an error names the file, or the folder of it that is wrong.
func namesAPart(text, name string) bool {
	for n := 1; n <= len(name); n++ {
		if (n == len(name) || name[n] == '/') && strings.Contains(text, fmt.Sprintf("%q", name[:n])) {
			return true
		}
	}
	return false
}

func TestCollisions(t *testing.T) {
	for _, test := range []struct{ first, second string }{
		{"file", "file"}, {"file", "FILE"}, {"file", "file/below"}, {"folder/a", "Folder/b"}, {"folder/a", "folder"},
		{"ä", "Ä"},
	} {
		i := image(t, map[string]string{test.first: ""})
		if err := i.Add(test.second, nil); err == nil {
			t.Errorf("%q and %q were accepted on one disc", test.first, test.second)
		}
	}
}

func TestLimits(t *testing.T) {
	i := image(t, nil)
	if err := i.AddReader("huge", disc.MaxFile+1, nil); err == nil || !strings.Contains(err.Error(), `"huge"`) {
		t.Errorf("a file beyond 32 bits: %v", err)
	}
	if err := i.AddReader("unknown", -1, nil); err == nil {
		t.Error("a file of unknown size was accepted")
	}
	for n := range 2 {
		if err := i.AddReader(fmt.Sprint("large", n), disc.MaxFile, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.AddReader("one too many", 1, nil); err == nil || !strings.Contains(err.Error(), `"one too many"`) {
		t.Errorf("a disc beyond its size: %v", err)
	}

	i = image(t, nil)
	for n := range disc.MaxEntries {
		if err := i.Add(fmt.Sprintf("file-%05d.txt", n), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Add("last", nil); err == nil || !strings.Contains(err.Error(), `"last"`) {
		t.Errorf("a disc with too many files: %v", err)
	}
	if lines := strings.Count(run(t, "isoinfo", "-J", "-f", "-i", written(t, i)), "/file-"); lines != disc.MaxEntries {
		t.Errorf("isoinfo -J lists %d of %d files", lines, disc.MaxEntries)
	}

	for _, label := range []string{"", "lower", "SEVENTEEN_LETTERS", "A B", "Ä"} {
		if _, err := disc.New(label, stamp); err == nil {
			t.Errorf("the label %q was accepted", label)
		}
	}
	if _, err := disc.New("A", time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("a time before 1900 was accepted")
	}
}

var errBroken = errors.New("the source broke")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestFilesThatChanged(t *testing.T) {
	for _, test := range []struct {
		name    string
		content io.Reader
		reason  string
	}{
		{"shorter", strings.NewReader("123"), "has 3 bytes, but had 4"},
		{"longer", strings.NewReader("12345"), "more than the 4 bytes"},
		{"broken", broken{}, errBroken.Error()},
	} {
		i := image(t, nil)
		if err := i.AddReader(test.name, 4, test.content); err != nil {
			t.Fatal(err)
		}
		_, err := i.WriteTo(io.Discard)
		if text := fmt.Sprint(err); !strings.Contains(text, test.reason) || !strings.Contains(text, test.name) {
			t.Errorf("%s: error %s, want %q and the name", test.name, text, test.reason)
		}
	}
}

// A link in a folder of drivers must not bring another file of your machine onto the
// disc, neither when it is added nor when it takes a file's place later.
func TestLinksAreNotFollowed(t *testing.T) {
	folder, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "driver.inf")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	if err := image(t, nil).AddFS("drivers", os.DirFS(folder)); err == nil || !strings.Contains(err.Error(),
		"drivers/driver.inf") {
		t.Errorf("a link was accepted: %v", err)
	}

	if err := errors.Join(os.Remove(link), os.WriteFile(link, []byte("driver"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	i := image(t, nil)
	if err := i.AddFS("drivers", root.FS()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := i.WriteTo(&out); err == nil || bytes.Contains(out.Bytes(), []byte("secret")) {
		t.Errorf("a link that took a file's place was followed: %v", err)
	}
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return f.room, errBroken
	}
	f.room -= len(p)
	return len(p), nil
}

func TestAFullDisk(t *testing.T) {
	for _, room := range []int{0, 40000, 300000} {
		if _, err := image(t, contents()).WriteTo(&full{room}); !errors.Is(err, errBroken) {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
	}
}

// FuzzNames holds that whatever Add accepts is read back under the same name.
func FuzzNames(f *testing.F) {
	for name := range contents() {
		f.Add(name)
	}
	f.Add("a/../b")
	f.Fuzz(func(t *testing.T, name string) {
		i, err := disc.New("A", stamp)
		if err != nil {
			t.Fatal(err)
		}
		if i.Add(name, []byte("x")) != nil {
			return
		}
		if !i.Has(name) || strings.Contains(name, "..") && slices.Contains(strings.Split(name, "/"), "..") {
			t.Errorf("%q was accepted", name)
		}
		if _, err := i.WriteTo(io.Discard); err != nil {
			t.Errorf("%q was accepted, then: %v", name, err)
		}
	})
}
