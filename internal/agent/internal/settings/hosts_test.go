package settings

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const bom = "\xef\xbb\xbf"

func TestSetHostsLineByLine(t *testing.T) {
	const windows = "# Copyright (c) 1993-2009 Microsoft Corp.\r\n#\r\n#      102.54.94.97     rhino.acme.com         " +
		" # source server\r\n"
	tests := []struct {
		name, before, after string
		changes             []HostsEntry
	}{
		{"an empty file", "", "10.0.0.1\tapi\r\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"after Windows's own comments", windows, windows + "10.0.0.1\tapi\r\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"a commented name is none", "# 10.0.0.1 api\n", "# 10.0.0.1 api\n10.0.0.1\tapi\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"no newline at the end", "10.0.0.2 db", "10.0.0.2 db\r\n10.0.0.1\tapi\r\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"LF stays LF", "10.0.0.2 db\n", "10.0.0.2 db\n10.0.0.1\tapi\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"a byte order mark stays", "\xef\xbb\xbf10.0.0.2 db\n", "\xef\xbb\xbf10.0.0.2 db\n10.0.0.1\tapi\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"as wanted already", "  10.0.0.1 \t API  alias # here\n", "  10.0.0.1 \t API  alias # here\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"the address of a line of its own", "10.0.0.9   api  # control plane\r\n",
			"10.0.0.1   api  # control plane\r\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"out of a shared line", "10.0.0.9 db  api  web\n", "10.0.0.9 db  web\n10.0.0.1\tapi\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"first of a shared line", "10.0.0.9 api web\n", "10.0.0.9 web\n10.0.0.1\tapi\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"to a line that has it too", "10.0.0.9 api\n10.0.0.1 api\n", "10.0.0.1 api\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"no other address stays", "10.0.0.1 api\n::1 api\n10.0.0.1 api web\n", "10.0.0.1 api\n10.0.0.1 web\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"twice in one line", "10.0.0.1 api Api web\n", "10.0.0.1 api web\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"the same IPv6 address", "FE80:0::1 api\n", "FE80:0::1 api\n", []HostsEntry{{"api", "fe80::1"}}},
		{"remove", "10.0.0.1 api\r\n10.0.0.2 db api\r\n", "10.0.0.2 db\r\n", []HostsEntry{{"api", ""}}},
		{"remove keeps a remark", "10.0.0.1 api # ask Ann first\n", "# ask Ann first\n", []HostsEntry{{"api", ""}}},
		{"remove what is not there", "10.0.0.2 db\n\n", "10.0.0.2 db\n\n", []HostsEntry{{"api", ""}}},
		{"remove leaves longer names", "10.0.0.1 api.x xapi\n", "10.0.0.1 api.x xapi\n", []HostsEntry{{"api", ""}}},
		{"what Windows reads and we do not", "010.0.0.1 api\n", "10.0.0.1 api\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"garbage stays", "hello api\n\xff\xfe api\n10.0.0.1\n", "hello api\n\xff\xfe api\n10.0.0.1\n10.0.0.1\tapi\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		// Windows reads nine names of a line: kyma-project/cli#93, goodhosts/hostsfile#18.
		{"the tenth name", "10.0.0.1 a b c d e f g h i api\r\n", "10.0.0.1 a b c d e f g h i api\r\n10.0.0.1\tapi\r\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"the ninth name", "10.0.0.1 a b c d e f g h api j\n", "10.0.0.1 a b c d e f g h api j\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"the tenth name stays unread", "10.0.0.9 a b c d e f g api i j k # why\n",
			"10.0.0.9 a b c d e f g i # j k # why\n10.0.0.1\tapi\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"nine times one name, and another", "10.0.0.9 a a a a a a a a a 10.0.0.8 b\n", "# 10.0.0.8 b\n",
			[]HostsEntry{{"a", ""}}},
		{"NUL characters at the end (microsoft/WSL#9642 has a mark)", bom + "10.0.0.2 db\r\n\x00\x00\x00",
			bom + "10.0.0.2 db\r\n10.0.0.1\tapi\r\n", []HostsEntry{{"api", "10.0.0.1"}}},
		{"NUL characters at the end stay", "10.0.0.1 api\r\n\x00", "10.0.0.1 api\r\n\x00",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"a code page", "10.0.0.2 db # B\xfcro\r\n", "10.0.0.2 db # B\xfcro\r\n10.0.0.1\tapi\r\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
		{"CR CR LF", "10.0.0.2 db\r\r\n10.0.0.9 api\r\r\n", "10.0.0.2 db\r\r\n10.0.0.1 api\r\r\n",
			[]HostsEntry{{"api", "10.0.0.1"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if after := edit(t, test.before, test.changes...); after != test.after {
				t.Fatalf("got\n%q\nwanted\n%q", after, test.after)
			}
		})
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

func edit(t fataler, before string, changes ...HostsEntry) string {
	t.Helper()
	if err := checkHosts(changes); err != nil {
		t.Fatal(err)
	}
	file, err := parseHosts([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	file.change(changes)
	return string(file.bytes())
}

func TestHostsRefusesWhatWindowsWouldNotRead(t *testing.T) {
	for _, bad := range [][]HostsEntry{
		{{"", "10.0.0.1"}},
		{{"two words", "10.0.0.1"}},
		{{"a#b", "10.0.0.1"}},
		{{"line\nbreak", "10.0.0.1"}},
		{{"api", "10.0.0"}},
		{{"api", "10.0.0.1 evil"}},
		{{"api", "10.0.0.1"}, {"API", "10.0.0.2"}},
		{{"api", "10.0.0.1"}, {"api", ""}},
	} {
		if err := checkHosts(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	for _, wide := range []string{"\xff\xfe1\x00", "\xfe\xff\x001", "1\x000\x00", "\x001\x000"} {
		if _, err := parseHosts([]byte(wide)); err == nil {
			t.Errorf("UTF-16 was accepted: %q", wide)
		}
	}
}

func TestHostsParseAndRenderAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "file")
		file, err := parseHosts(data)
		if err != nil {
			t.Skip()
		}
		if !bytes.Equal(file.bytes(), data) {
			t.Fatalf("%q became %q", data, file.bytes())
		}
	})
}

func FuzzHostsParseAndRender(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf# c\r\n10.0.0.1 a b # c\n\n::1 a\r"), "a")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		file, err := parseHosts(data)
		if err != nil {
			return
		}
		if !bytes.Equal(file.bytes(), data) {
			t.Fatalf("%q became %q", data, file.bytes())
		}
		if !isHostname(name) {
			return
		}
		checkChange(t, string(data), HostsEntry{name, "10.9.8.7"})
	})
}

func TestHostsChangeOnAnyFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawHosts(t)
		change := HostsEntry{
			Name:    rapid.SampledFrom([]string{"a", "B", "c.d", "new"}).Draw(t, "name"),
			Address: rapid.SampledFrom([]string{"", "10.0.0.1", "::1", "10.0.0.77"}).Draw(t, "address"),
		}
		checkChange(t, before, change)
	})
}

func drawHosts(t *rapid.T) string {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"", "# comment", "garbage a", "\t", "10.0.0.1", "# 10.0.0.1 a"}),
		rapid.Custom(func(t *rapid.T) string {
			address := rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "::1", "0:0::1"}).Draw(t, "address")
			names := rapid.SliceOfN(rapid.SampledFrom([]string{" a", "\tA", "  b", " c.d", " other"}), 1,
				13).Draw(t, "names")
			return address + strings.Join(names, "") + rapid.SampledFrom([]string{"", " ", " # why", "#why"}).Draw(t,
				"comment")
		}),
	)
	var file strings.Builder
	file.WriteString(rapid.SampledFrom([]string{"", bom}).Draw(t, "bom"))
	for _, text := range rapid.SliceOf(line).Draw(t, "lines") {
		file.WriteString(text + rapid.SampledFrom([]string{"\r\n", "\n"}).Draw(t, "end"))
	}
	return strings.TrimSuffix(file.String(), rapid.SampledFrom([]string{"", "\n"}).Draw(t, "cut"))
}

type failer interface {
	fataler
	Fatalf(format string, args ...any)
}

// checkChange makes a change and checks all properties that it must have.
func checkChange(t failer, before string, change HostsEntry) {
	t.Helper()
	after := edit(t, before, change)
	if again := edit(t, after, change); again != after {
		t.Fatalf("not idempotent:\n%q\n%q", after, again)
	}
	switch got := addresses(t, after, change.Name); {
	case change.Address == "" && len(got) != 0:
		t.Fatalf("%s resolves to %q, want no address, in\n%q", change.Name, got, after)
	case change.Address != "" && len(got) != 1:
		t.Fatalf("%s resolves to %q, want %s alone, in\n%q", change.Name, got, change.Address, after)
	case change.Address != "" && !sameAddress(got[0], change.Address):
		t.Fatalf("%s resolves to %s, want %s, in\n%q", change.Name, got[0], change.Address, after)
	}
	if was, is := others(t, before, change.Name), others(t, after, change.Name); !slices.Equal(was, is) {
		t.Fatalf("other names were %q and are %q", was, is)
	}
	if lost, ok := keepsLines(parsed(t, before), parsed(t, after), change.Name); !ok {
		t.Fatalf("line %q is lost or changed in\n%q", lost, after)
	}
}

// keepsLines checks that every line without the name is unchanged, in the same
// order and with the same ending. Only the last line may get a line ending.
func keepsLines(before, after hostsFile, name string) (lost hostsLine, ok bool) {
	rest := after.lines
	for i, line := range before.lines {
		if _, names := line.parse(); indexName(names, name) >= 0 {
			continue
		}
		at := slices.IndexFunc(rest, func(l hostsLine) bool {
			if i == len(before.lines)-1 && line.end == "" {
				return strings.TrimRight(l.text, "\r") == strings.TrimRight(line.text, "\r")
			}
			return l == line
		})
		if at < 0 {
			return line, false
		}
		rest = rest[at+1:]
	}
	return hostsLine{}, before.bom == after.bom
}

func parsed(t fataler, data string) hostsFile {
	t.Helper()
	file, err := parseHosts([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func addresses(t fataler, data, name string) (all []string) {
	t.Helper()
	file := parsed(t, data)
	for _, e := range file.entries() {
		if strings.EqualFold(e.Name, name) {
			all = append(all, e.Address)
		}
	}
	return all
}

func others(t fataler, data, name string) (all []string) {
	t.Helper()
	file := parsed(t, data)
	for _, e := range file.entries() {
		if !strings.EqualFold(e.Name, name) {
			all = append(all, fmt.Sprint(e))
		}
	}
	return all
}
