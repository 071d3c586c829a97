package redact

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// The result is the same, however the text is split into pieces.
func TestThePiecesDoNotMatter(t *testing.T) {
	r := tested(t)
	known := secrets()
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			part := []byte(rapid.SampledFrom(known).Draw(t, "secret").text)
			switch rapid.IntRange(0, 5).Draw(t, "form") {
			case 0:
				part = wide(string(part))
			case 1: // lines longer than the window
				part = append(bytes.Repeat([]byte(rapid.SampledFrom([]string{"a ", "x", "a=b,"}).Draw(t, "filler")),
					rapid.IntRange(window/4-30, window+9).Draw(t, "long")), part...)
			case 2:
				part = bytes.ReplaceAll(part, []byte("\n"), nil)
			}
			text = append(text, part...)
		}
		want := r.Bytes(text)
		s := r.Stream()
		var got []byte
		for rest := text; len(rest) > 0; {
			n := min(len(rest), rapid.OneOf(rapid.IntRange(1, 50), rapid.IntRange(1, 2*window)).Draw(t, "piece"))
			got = append(got, s.Next(rest[:n])...)
			rest = rest[n:]
		}
		got = append(got, s.End()...)
		if !bytes.Equal(got, want) {
			t.Fatalf("in pieces it is\n%.2000q\nas a whole\n%.2000q", got, want)
		}
	})
}

// A secret is redacted anywhere in a line, even if the line is split there.
func TestInLinesLongerThanTheWindow(t *testing.T) {
	r := tested(t)
	for _, s := range secrets() {
		if strings.Count(strings.TrimSpace(s.text), "\n") > 0 {
			continue
		}
		text := strings.TrimSpace(s.text)
		for _, filler := range []string{"word ", "a,"} {
			for at := 61_240; at < 65_736; at += 397 {
				line := strings.Repeat(filler, at/len(filler)) + " " + text + " " + strings.Repeat(filler, 2000)
				if got := r.String(line); strings.Contains(got, s.value) {
					t.Fatalf("%s: %q is left at %d", s.name, s.value, at)
				}
			}
		}
	}
}

// A private key is redacted at every offset at which Next may split a line, or pass on a part of it. The offsets
// are those of this test, not of the code: a shorter overlap must not move them.
func TestAPrivateKeyAtTheEndOfTheWindow(t *testing.T) {
	r := tested(t)
	key := "-----BEGIN PRIVATE KEY-----\\n" + strings.ReplaceAll(keyBody, "\n", "\\n") + "\\n-----END PRIVATE KEY-----"
	before := strings.Repeat("word ", 65_536/5+1)
	for _, border := range []int{61_440, 65_536} {
		for at := border - len(key); at <= border; at++ {
			got := r.String(before[:at-1] + " " + key + " and " + before[:5_000])
			for body := range strings.SplitSeq(keyBody, "\n") {
				if strings.Contains(got, body[:16]) || strings.Contains(got, body[len(body)-16:]) {
					t.Fatalf("a part of %.20s is left at %d", body, at)
				}
			}
		}
	}
}

// A value longer than the held bytes is redacted too.
func TestALongSecret(t *testing.T) {
	r := tested(t)
	value := strings.Repeat("k8sKEYk8s", 40_000)
	for _, text := range []string{`{"client-key-data":"` + value + `","next":"here"}`, "x --token=" + value +
		" next here", `"password":"` + value + `", next here`} {
		got := r.String(text)
		switch {
		case strings.Contains(got, "k8sKEYk8s"):
			t.Errorf("got contains %q:\n%s", "k8sKEYk8s", got)
		case !strings.Contains(got, "next"):
			t.Errorf("got lacks %q:\n%s", "next", got)
		case !strings.Contains(got, "here"):
			t.Errorf("got lacks %q:\n%s", "here", got)
		case strings.Count(got, Mark) != 1:
			t.Errorf("%q occurs %d times in got, want %d:\n%s", Mark, strings.Count(got, Mark), 1, got)
		}
	}
}

func TestWideText(t *testing.T) {
	r := tested(t)
	for _, s := range secrets() {
		for name, data := range map[string][]byte{"little": wide(s.text), "big": swapped(wide(s.text)),
			"marked": append([]byte{0xff, 0xfe}, wide(s.text)...)} {
			got := r.Bytes(data)
			if bytes.Contains(bytes.ReplaceAll(got, []byte{0}, nil), []byte(s.value)) {
				t.Errorf("%s, %s endian: %q is left", s.name, name, s.value)
			}
			if len(got)%2 != 0 || !bytes.Contains(got, bytes.Trim(wide(Mark), "\x00")) {
				t.Errorf("%s, %s endian: it is no UTF-16 any more", s.name, name)
			}
		}
	}
}

func wide(text string) (out []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}

func swapped(data []byte) []byte {
	out := make([]byte, len(data))
	for i := 0; i+1 < len(data); i += 2 {
		out[i], out[i+1] = data[i+1], data[i]
	}
	return out
}

// A text that begins inside a line may lack the name of a secret, so that line
// is removed.
func TestMidway(t *testing.T) {
	s := tested(t).Stream()
	s.Midway()
	got := string(s.Next([]byte("nter2\nuser: x\n"))) + string(s.End())
	if got != "user: x\n" {
		t.Errorf("got is %q, want %q", got, "user: x\n")
	}
}

func FuzzPieces(f *testing.F) {
	for _, s := range secrets() {
		f.Add([]byte(s.text), 7)
		f.Add(wide(s.text), 3)
	}
	r := tested(f)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if size = size % 1000; size < 1 {
			return
		}
		s := r.Stream()
		var got []byte
		for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			got = append(got, s.Next(rest[:min(size, len(rest))])...)
		}
		got = append(got, s.End()...)
		if want := r.Bytes(text); !bytes.Equal(got, want) {
			t.Fatalf("in pieces of %d it is %q, as a whole %q", size, got, want)
		}
	})
}

// A value's own quote may be missing its end; the text around it has one.
func TestAnUnclosedQuoteEndsWithTheTextAround(t *testing.T) {
	r, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`"pAss='"`:                     `"pAss='"`,
		`{"a":"pAss='","b":1}`:         `{"a":"pAss='","b":1}`,
		`{"a":"pAss='hunter2","b":1}`:  `{"a":"pAss='` + Mark + `","b":1}`,
		`["password = '", 'x']`:        `["password = '", 'x']`,
		`echo "" password='hun",ter2'`: `echo "" password='` + Mark + `'`,
		`"!pAss='"`:                    `"!pAss='"`,
		`x "--password='hunter2 z"`:    `x "--password='` + Mark + `"`,
		`"x" password='hun"ter2`:       `"x" password='` + Mark,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%s became %s, expected %s", text, got, want)
		}
	}
}
