package livetable

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestKeysOfATable(t *testing.T) {
	type want struct {
		sort    string
		reverse bool
		filter  string
		footer  string // the beginning of the footer
		quit    bool
	}
	for name, c := range map[string]struct {
		input []string // the bytes of each read
		want  want
	}{
		"none":               {nil, want{sort: "a", footer: "s sort, S reverse, / filter, q quit, ? keys"}},
		"next column":        {[]string{"s"}, want{sort: "b", footer: "s sort"}},
		"around":             {[]string{"ss", "s"}, want{sort: "a", footer: "s sort"}},
		"reversed":           {[]string{"sS"}, want{sort: "b", reverse: true, footer: "s sort"}},
		"the next is not":    {[]string{"Ss"}, want{sort: "b", footer: "s sort"}},
		"while it is typed":  {[]string{"/", "qs?"}, want{sort: "a", filter: "qs?", footer: "/qs?_"}},
		"kept":               {[]string{"/web\r"}, want{sort: "a", filter: "web", footer: "/web  Esc"}},
		"cleared":            {[]string{"/web", "\x1b"}, want{sort: "a", footer: "s sort"}},
		"cleared later":      {[]string{"/web\n", "\x1b"}, want{sort: "a", footer: "s sort"}},
		"taken back":         {[]string{"/wö\x7fx\x08e"}, want{sort: "a", filter: "we", footer: "/we_"}},
		"taken back too far": {[]string{"/\x7f\x7fx"}, want{sort: "a", filter: "x", footer: "/x_"}},
		"half a character":   {[]string{"/w\xc3", "\xb6"}, want{sort: "a", filter: "wö", footer: "/wö_"}},
		"arrows":             {[]string{"\x1b[A\x1bOB\x1b[1;5C", "s"}, want{sort: "b", footer: "s sort"}},
		"arrows in a filter": {[]string{"/a\x1b[Db"}, want{sort: "a", filter: "ab", footer: "/ab_"}},
		"control characters": {[]string{"/a\x1b]0;x\a\u009b\x00b"}, want{sort: "a", footer: "s sort"}},
		"help":               {[]string{"?"}, want{sort: "a", footer: "s  sort by the next column: a, b or c"}},
		"help and away":      {[]string{"??"}, want{sort: "a", footer: "s sort"}},
		"quit":               {[]string{"sq"}, want{sort: "b", footer: "s sort", quit: true}},
		"Ctrl-D":             {[]string{"\x04"}, want{sort: "a", footer: "s sort", quit: true}},
		"Ctrl-C in a filter": {[]string{"/a\x03"}, want{sort: "a", filter: "a", footer: "/a_", quit: true}},
		"no UTF-8":           {[]string{"/\xff\xfea"}, want{sort: "a", filter: "a", footer: "/a_"}},
		"a long filter": {[]string{"/" + strings.Repeat("x", 1000)},
			want{sort: "a", filter: strings.Repeat("x", longestFilter), footer: "/xxx"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewView([]string{"a", "b", "c"}, "a")
			quit := false
			for _, input := range c.input {
				quit = v.Press([]byte(input))
			}
			got := v.Current("")
			switch {
			case got.Sort != c.want.sort:
				t.Errorf("got.Sort = %v, want %v", got.Sort, c.want.sort)
			case got.Reverse != c.want.reverse:
				t.Errorf("got.Reverse = %v, want %v", got.Reverse, c.want.reverse)
			case got.Filter != c.want.filter:
				t.Errorf("got.Filter = %v, want %v", got.Filter, c.want.filter)
			case quit != c.want.quit:
				t.Errorf("quit = %v, want %v; got %+v, quit %v", quit, c.want.quit, got, quit)
			}
			if !strings.HasPrefix(got.Footer[0], c.want.footer) {
				t.Errorf("footer %q", got.Footer)
			}
			v.End()
			if left := v.Current("").Footer; left != nil {
				t.Errorf("footer %q at the end", left)
			}
		})
	}
}

func FuzzKeysOfATable(f *testing.F) {
	f.Add([]byte("s/web\r\x1b[A"))
	f.Fuzz(func(t *testing.T, input []byte) {
		v := NewView([]string{"a", "b"}, "a")
		for piece := range slices.Chunk(input, 5) {
			v.Press(piece)
		}
		got := v.Current("")
		switch {
		case len(got.Footer) == 0:
			t.Errorf("len(got.Footer) = 0: %+v", got.Footer)
		case len(got.Filter) > longestFilter+4:
			t.Errorf("len(got.Filter) = %v, want at most %v: %+v", len(got.Filter), longestFilter+4, got.Filter)
		case len(v.partial) > 3:
			t.Errorf("len(v.partial) = %v, want at most 3: %+v", len(v.partial), v.partial)
		case strings.ContainsFunc(got.Filter, unicode.IsControl):
			t.Errorf("%+v", got)
		}
	})
}

func TestTheHeaderMarksTheColumn(t *testing.T) {
	header := []string{"OWNER", "CORES", "MEMORY"}
	v := NewView([]string{"owner", "cpu", "memory"}, "owner")
	var shown []string
	for _, keys := range []string{"", "s", "S", "s"} {
		v.Press([]byte(keys))
		shown = append(shown, strings.Join(v.Mark(header, map[string]string{"cpu": "CORES"}), " "))
	}
	want := []string{"OWNER↓ CORES MEMORY", "OWNER CORES↓ MEMORY", "OWNER CORES↑ MEMORY", "OWNER CORES MEMORY↓"}
	if !slices.Equal(shown, want) {
		t.Errorf("got %q", shown)
	}
	if header[0] != "OWNER" {
		t.Error("the header itself was changed")
	}
	var none *View // without keys
	switch got := none.Mark(header, nil); {
	case !slices.Equal(got, header):
		t.Errorf("got = %v, want %v", got, header)
	case none.Current("cpu").Sort != "cpu":
		t.Errorf("none.Current(\"cpu\").Sort is wrong; got %q", got)
	case none.Current("cpu").Footer != nil:
		t.Errorf("none.Current(\"cpu\").Footer is wrong; got %q", got)
	}
}

func TestAScreenKeepsItsFooter(t *testing.T) {
	for height, want := range map[int]string{24: "1|2|3|4|5|6|hint|more", 8: "1|2|3|4|… and 2 more|hint|more",
		5: "1|2|… and 4 more|hint", 4: "1|2|… and 4 more"} {
		var out strings.Builder
		s := &Screen{out: &out, size: func() (int, int) { return 20, height }}
		if err := s.Draw("1\n2\n3\n4\n5\n6\n", "hint", "more"); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("\r\x1b[K", "", "\x1b[2m", "", "\x1b[0m", "", "\x1b[J", "").Replace(out.String())
		switch got := strings.ReplaceAll(strings.TrimSpace(text), "\n", "|"); {
		case got != want:
			t.Errorf("got = %v, want %v", got, want)
		case s.drawn != strings.Count(want, "|")+1:
			t.Errorf("s.drawn = %v, want %v", s.drawn, strings.Count(want, "|")+1)
		case s.drawn >= height:
			t.Errorf("s.drawn = %v, want less than %v; height %d: %q, %d lines", s.drawn, height, height, got, s.drawn)
		}
	}
}
