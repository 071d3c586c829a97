package media_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/media"
	"github.com/swdt-dev/swdt/internal/vm/media/discfs"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

func TestChoose(t *testing.T) {
	m := inspect(t, mediatest.WindowsISO(t))
	for wanted, index := range map[string]int{
		"standard-core": 1, "standard": 2, "datacenter-core": 3, "datacenter": 4, "2": 2, "4": 4,
		"Windows Server 2022 SERVERDATACENTERCORE": 3, "windows server 2022 serverstandard": 2,
		"Windows Server 2022 Datacenter Evaluation": 3,
	} {
		if e, err := m.Choose(wanted); err != nil || e.Index != index {
			t.Errorf("%q: %d, %v; want %d", wanted, e.Index, err, index)
		}
	}
	for _, wanted := range []string{"", "0", "5", "-1", "core", "Standard-Core ", "999999999999999999999"} {
		_, err := m.Choose(wanted)
		var typed *media.EditionError
		if !errors.As(err, &typed) || len(typed.Editions) != 4 {
			t.Errorf("%q: %v", wanted, err)
		}
	}
	_, err := m.Choose("home")
	const want = `the ISO has no edition "home"; choose one of its editions, by index, name or word: ` +
		`1 "Windows Server 2022 SERVERSTANDARDCORE" (standard-core), 2 "Windows Server 2022 SERVERSTANDARD" (standard), ` +
		`3 "Windows Server 2022 SERVERDATACENTERCORE" (datacenter-core), ` +
		`4 "Windows Server 2022 SERVERDATACENTER" (datacenter)`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestChooseAmongEqualNames(t *testing.T) {
	m := media.Media{Editions: []media.Edition{{Index: 1, Name: "Windows"}, {Index: 2, Name: "Windows"}, {Index: 3,
		Name: "3x", DisplayName: "2"}}}
	_, err := m.Choose("Windows")
	const want = `several editions of the ISO match "Windows"; choose one of its editions, ` +
		`by index, name or word: 1 "Windows", 2 "Windows", 3 "3x"`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if e, err := m.Choose("2"); err != nil || e.Index != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := (media.Media{}).Choose("standard"); err == nil ||
		err.Error() != `the ISO has no edition "standard", and no other one; use another ISO` {
		t.Error(err)
	}
}

// counter counts the bytes that are reported.
type counter struct{ bytes int64 }

func (c *counter) Add(n int64) { c.bytes += n }
func (c *counter) End()        {}

func TestHash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	file, size := open(t, path)
	var progress counter
	got, err := media.Hash(t.Context(), file, size, &progress)
	want := media.Sum{SHA256: "bbd05cf6097ac9b1f89ea29d2542c1b7b67ee46848393895f5a9e43fa1f621e5"} // of sha256sum
	if got != want || err != nil {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if progress.bytes != size {
		t.Errorf("progress of %d bytes, want %d", progress.bytes, size)
	}
	_, err = media.Hash(t.Context(), file, size+1, &progress)
	var short *discfs.CutShortError
	if !errors.As(err, &short) {
		t.Fatalf("error %v, want a CutShortError", err)
	}
	if short.Have != size || short.Want != size+1 {
		t.Errorf("%d bytes of %d, want %d of %d", short.Have, short.Want, size, size+1)
	}
	stopped := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := media.Hash(ctx, file, size, &progress); !errors.Is(err, stopped) {
		t.Error(err)
	}
}

func TestKnown(t *testing.T) {
	const hash = "7b052573ba7894c9924e3e87ba732ccd354d18cb75a883efa9b900ea125bfd51"
	if name := media.Known(hash); !strings.Contains(name, "Server 2025") {
		t.Error(name)
	}
	if name := media.Known(""); name != "" {
		t.Error(name)
	}
}

func TestDrivers(t *testing.T) {
	file, size := open(t, mediatest.VirtioISO(t, "2k19", "2k22", "2k25", "w10", "w11"))
	d, err := media.Open(file, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2k19", "2k22", "2k25", "w10", "w11", "2K22"} {
		folders, err := media.Drivers(d, version)
		if err != nil || len(folders) != 4 {
			t.Fatalf("%s: %+v, %v", version, folders, err)
		}
		version = strings.ToLower(version)
		want := media.DriverFolder{Driver: "NetKVM", Path: "NetKVM/" + version + "/amd64", Files: []media.DriverFile{
			{Path: "netkvm.cat", Bytes: 10 + int64(len(version))}, {Path: "netkvm.inf",
				Bytes: 10 + int64(len(version))}, {Path: "netkvm.sys", Bytes: 10 + int64(len(version))},
		}}
		if diff := cmp.Diff(want, folders[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
	_, err = media.Drivers(d, "w7")
	if err == nil ||
		err.Error() != `the ISO has no virtio drivers for "w7", only for `+
			`2k19, 2k22, 2k25, w10, w11; use a newer ISO of virtio-win` {
		t.Error(err)
	}
	opened, err := d.Open("netkvm/2K22/AMD64/NETKVM.INF")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(opened); string(content) != "NetKVM2k22.inf" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}

func TestHostileDrivers(t *testing.T) {
	many := fstest.MapFS{"a/w11/amd64/x.inf": {}}
	for n := range 4100 {
		many[fmt.Sprint("a/w11/amd64/", n)] = &fstest.MapFile{}
	}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a drive":            {fstest.MapFS{"a/w11/amd64/C:x.inf": {}}, "Windows forbids a character of its name"},
		"a stream":           {fstest.MapFS{"a/w11/amd64/x.inf:evil": {}}, "Windows forbids a character of its name"},
		"a backslash":        {fstest.MapFS{`a/w11/amd64/..\x.inf`: {}}, "Windows forbids a character of its name"},
		"a device":           {fstest.MapFS{"a/w11/amd64/nul.inf": {}}, "its name is reserved for a device"},
		"a device as folder": {fstest.MapFS{"COM1/w11/amd64/x.inf": {}}, "its name is reserved for a device"},
		"a dot at the end":   {fstest.MapFS{"a/w11/amd64/x.inf.": {}}, "its name ends in a space or a dot"},
		"too many files":     {many, "more than 4096 files or 268.4 MB"},
		"nothing to install": {fstest.MapFS{"a/w11/amd64/x.sys": {}}, `no virtio drivers`},
		"no drivers": {fstest.MapFS{"a/b/x": {}},
			"the ISO has no virtio drivers (DRIVER/VERSION/amd64); use the ISO of virtio-win"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := media.Drivers(c.files, "w11")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// BenchmarkInspect inspects an image of 1.4 GB, nearly all of which is install.wim in two
// extents, with the list of editions at its end, as on real media.
func BenchmarkInspect(b *testing.B) {
	folder := mediatest.WindowsFolder(b)
	sources := filepath.Join(folder, "sources")
	install := filepath.Join(b.TempDir(), "install.wim")
	mediatest.WIM(b, install, mediatest.Server2022())
	pad(b, install, filepath.Join(sources, "install.wim"), 1_400_000_000)
	file, size := open(b, mediatest.UDF(b, folder, mediatest.WindowsLabel, mediatest.BootArguments()...))
	for b.Loop() {
		if _, err := media.Inspect(file, size); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1e6, "MB-image")
}

// pad copies an image file, with zeros before its XML document.
func pad(t testing.TB, from, to string, zeros int64) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	size, at := binary.LittleEndian.Uint64(data[72:])&(1<<56-1), binary.LittleEndian.Uint64(data[80:])
	document := bytes.Clone(data[at : at+size])
	binary.LittleEndian.PutUint64(data[80:], at+uint64(zeros))
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(data[:at]); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(document, int64(at)+zeros); err != nil {
		t.Fatal(err)
	}
}
