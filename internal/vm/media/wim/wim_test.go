package wim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/media/wim"
)

// file returns an image file without content, whose header states count images.
func file(count int, document string) []byte {
	text := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(document)) {
		text = binary.LittleEndian.AppendUint16(text, unit)
	}
	header := make([]byte, 208)
	copy(header, "MSWIM\x00\x00\x00")
	binary.LittleEndian.PutUint32(header[8:], 208)
	binary.LittleEndian.PutUint32(header[12:], 0x10d00)
	binary.LittleEndian.PutUint16(header[40:], 1)
	binary.LittleEndian.PutUint16(header[42:], 1)
	binary.LittleEndian.PutUint32(header[44:], uint32(count))
	binary.LittleEndian.PutUint64(header[72:], uint64(len(text)))
	binary.LittleEndian.PutUint64(header[80:], 208)
	return append(header, text...)
}

func read(data []byte) (wim.Info, error) { return wim.Read(bytes.NewReader(data), int64(len(data))) }

const oneImage = `<?xml version="1.0" encoding="UTF-16"?><WIM><TOTALBYTES>7</TOTALBYTES>
<IMAGE INDEX="1"><NAME> Windows Ünïcode </NAME><DISPLAYNAME>Shown</DISPLAYNAME><TOTALBYTES>123</TOTALBYTES>
<WINDOWS><ARCH>12</ARCH><PRODUCTNAME>P</PRODUCTNAME><EDITIONID>EnterpriseSEval</EDITIONID><INSTALLATIONTYPE>Client</INSTALLATIONTYPE>
<PRODUCTTYPE>WinNT</PRODUCTTYPE><LANGUAGES><LANGUAGE>de-DE</LANGUAGE><LANGUAGE>en-US</LANGUAGE><DEFAULT>de-DE</DEFAULT></LANGUAGES>
<VERSION><MAJOR>10</MAJOR><MINOR>0</MINOR><BUILD>26100</BUILD><SPBUILD>1742</SPBUILD><SPLEVEL>0</SPLEVEL></VERSION></WINDOWS></IMAGE></WIM>`

func TestRead(t *testing.T) {
	got, err := read(file(1, oneImage))
	want := wim.Info{Compression: "none", Part: 1, Parts: 1, Images: []wim.Image{{
		Index: 1, Name: "Windows Ünïcode", DisplayName: "Shown", Edition: "EnterpriseSEval", Installation: "Client",
		Product:     "P",
		ProductType: "WinNT", Architecture: "arm64", Major: 10, Build: 26100, ServicePack: 1742,
		Languages: []string{"de-DE", "en-US"}, DefaultLanguage: "de-DE", Bytes: 123,
	}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// wimlib writes the files; Compression and Solid are what it was asked for.
func TestFilesOfWimlib(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		compression string
		solid       bool
	}{
		"plain":      {[]string{"--compress=none"}, "none", false},
		"as Windows": {nil, "LZX", false},
		"fast":       {[]string{"--compress=XPRESS"}, "XPRESS", false},
		"ESD":        {[]string{"--solid"}, "LZMS", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "install.wim")
			mediatest.WIM(t, path, mediatest.Server2022(), c.args...)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(data)
			if err != nil {
				t.Fatal(err)
			}
			if got.Compression != c.compression || got.Solid != c.solid {
				t.Errorf("compression %v, solid %t; want %v, %t", got.Compression, got.Solid, c.compression, c.solid)
			}
			if got.Part != 1 || got.Parts != 1 {
				t.Errorf("part %d of %d, want 1 of 1", got.Part, got.Parts)
			}
			if len(got.Images) != 4 {
				t.Errorf("%d images, want 4", len(got.Images))
			}
			want := wim.Image{
				Index: 3, Name: "Windows Server 2022 SERVERDATACENTERCORE",
				DisplayName: "Windows Server 2022 Datacenter Evaluation",
				Edition:     "ServerDatacenterEval", Installation: "Server Core",
				Product: "Microsoft® Windows® Operating System", ProductType: "ServerNT",
				Architecture: "amd64", Major: 10, Build: 20348, ServicePack: 587, Languages: []string{"en-US"},
				DefaultLanguage: "en-US",
				Bytes:           got.Images[2].Bytes,
			}
			if diff := cmp.Diff(want, got.Images[2]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPartsOfASplitFile(t *testing.T) {
	folder := t.TempDir()
	content := t.TempDir()
	big := make([]byte, 3<<20)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	mediatest.Write(t, content, map[string]string{"a": string(big[:1<<20]), "b": "b" + string(big[1<<20:2<<20]),
		"c": "c" + string(big[2<<20:])})
	whole := filepath.Join(folder, "install.wim")
	mediatest.Run(t, "wimcapture", content, whole, "Name", "--compress=none")
	mediatest.Run(t, "wimsplit", whole, filepath.Join(folder, "install.swm"), "1")
	for part := 1; part <= 3; part++ {
		name := "install.swm"
		if part > 1 {
			name = fmt.Sprintf("install%d.swm", part)
		}
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Part != part || got.Parts < 3 {
			t.Errorf("%s is part %d of %d, want %d of at least 3", name, got.Part, got.Parts, part)
		}
		if len(got.Images) != 1 {
			t.Errorf("%s has %d images, want 1", name, len(got.Images))
		}
	}
}

func TestHostileFiles(t *testing.T) {
	set := func(at int, data ...byte) []byte {
		f := file(1, oneImage)
		copy(f[at:], data)
		return f
	}
	many := strings.Repeat(`<IMAGE/>`, 60_000)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {nil,
			"byte 0 of the Windows image: the file ends after 0 bytes, before the 208 that are needed here"},
		"cut in the header": {file(1, oneImage)[:100], "the file ends after 100 bytes"},
		"cut in the list": {file(1, oneImage)[:300],
			"byte 208 of the Windows image: the file ends after 300 bytes"},
		"another file":             {set(0, 'P', 'K'), "does not begin as Windows image files do"},
		"for a pipe":               {set(0, []byte("WLPWM")...), "wimlib-imagex export"},
		"short header":             {set(8, 1, 0), "the header is too short"},
		"part 0":                   {set(40, 0), "the file is part 0 of 1"},
		"part 3 of 2":              {set(40, 3, 0, 2, 0), "the file is part 3 of 2"},
		"a compressed list":        {set(79, 4), "the list of editions is compressed"},
		"a list of terabytes":      {set(72, 0, 0, 0, 0, 0, 1), "the list of editions has 1099511627776 bytes"},
		"no list":                  {set(72, make([]byte, 8)...), "the file has no list of editions"},
		"a list before the file":   {set(80, 0, 0, 0, 0, 0, 0, 0, 0x80), "the file ends after"},
		"a list behind every file": {set(80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), "the file ends after"},
		"not UTF-16":               {set(208, 'x'), "is not UTF-16 text"},
		"not XML":                  {file(1, "<WIM><IMAGE"), "the list of editions is no XML document"},
		"entities of entities": {file(1,
			`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><WIM><IMAGE INDEX="1"><NAME>&b;</NAME></IMAGE></WIM>`),
			"no XML document"},
		"endless nesting": {file(1, strings.Repeat("<WIM>", 20_000)), "no XML document"},
		"another count":   {file(2, oneImage), "the header states 2 editions, but the list names 1"},
		"too many":        {file(60_000, "<WIM>"+many+"</WIM>"), "60000 editions: swdt reads at most 256"},
		"an index twice": {file(2, `<WIM><IMAGE INDEX="1"/><IMAGE INDEX="1"/></WIM>`),
			"the index 1 is repeated or out of range"},
		"an index of zero": {file(1, `<WIM><IMAGE INDEX="0"/></WIM>`), "the index 0 is repeated or out of range"},
		"a number that is none": {file(1, `<WIM><IMAGE INDEX="1"><WINDOWS><ARCH>x</ARCH></WINDOWS></IMAGE></WIM>`),
			"no XML document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var typed *wim.Error
			if !errors.As(err, &typed) {
				t.Errorf("%v has another type", err)
			}
		})
	}
}

// FuzzWIM reads files that a fuzzer makes: a header, and a document that is converted to
// UTF-16 if the fuzzer's is to be valid text.
func FuzzWIM(f *testing.F) {
	f.Add(file(1, oneImage), 1, oneImage)
	f.Add(file(0, "<WIM/>"), 0, "<WIM/>")
	f.Add([]byte("MSWIM"), 2, `<WIM><IMAGE INDEX="1"/><IMAGE INDEX="2"/></WIM>`)
	f.Fuzz(func(t *testing.T, data []byte, count int, document string) {
		for _, data := range [][]byte{data, file(count, document)} {
			info, err := read(data)
			if err != nil {
				continue
			}
			seen := map[int]bool{}
			for _, i := range info.Images {
				if i.Index < 1 || i.Index > len(info.Images) {
					t.Errorf("the index is not one of %d images: %+v", len(info.Images), i)
				}
				if seen[i.Index] {
					t.Errorf("two images have the index %d", i.Index)
				}
				if i.Bytes < 0 {
					t.Errorf("the size is negative: %+v", i)
				}
				seen[i.Index] = true
			}
		}
	})
}
