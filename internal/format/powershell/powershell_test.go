package powershell_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/format/powershell"
)

func script(t testing.TB, args []string) string {
	t.Helper()
	if args[len(args)-2] != "-EncodedCommand" {
		t.Fatalf("no encoded command at the end of %q", args)
	}
	text, err := powershell.Decode(args[len(args)-1])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestArgs(t *testing.T) {
	args, ok := powershell.Args("Write-Output 'it''s'\nexit 3")
	if !ok {
		t.Fatal("a short script does not fit")
	}
	for _, want := range []string{"-NoProfile", "-NonInteractive"} {
		if !strings.Contains(strings.Join(args, " "), want) {
			t.Errorf("%q lacks %s", args, want)
		}
	}
	text := script(t, args)
	for _, want := range []string{
		"$ErrorActionPreference = 'Stop'",
		"$ProgressPreference = 'SilentlyContinue'",
		"$swdtScript = 'Write-Output ''it''''s''\nexit 3'",
		"exit $LASTEXITCODE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
	// The command line has no character that any shell or parser could change.
	for _, arg := range args {
		if strings.ContainsAny(arg, " \"'`$%^&|<>()\n") {
			t.Errorf("argument %q would need quoting", arg)
		}
	}
}

func TestLongScriptsDoNotFit(t *testing.T) {
	if args, ok := powershell.Args(strings.Repeat("#", 20000)); ok {
		t.Fatalf("%d bytes of arguments are said to fit", len(strings.Join(args, " ")))
	}
	args, ok := powershell.Args(strings.Repeat("#", 8000))
	if line := powershell.Program + " " + strings.Join(args, " "); !ok || len(line) > 32766 {
		t.Fatalf("fits %v with %d characters", ok, len(line))
	}
}

func TestFileArgs(t *testing.T) {
	text := script(t, powershell.FileArgs(`C:\it's\a.ps1`))
	read := strings.Index(text, "ReadAllText")
	remove := strings.Index(text, "Remove-Item")
	run := strings.Index(text, "[scriptblock]::Create")
	switch {
	case !strings.Contains(text, `'C:\it''s\a.ps1'`):
		t.Fatalf("does not read, remove, run: text lacks %q:\n%s", `'C:\it''s\a.ps1'`, text)
	case read < 0:
		t.Fatalf("does not read, remove, run: read is %v, want at least 0", read)
	case remove < read:
		t.Fatalf("does not read, remove, run: remove is %v, want at least %v", remove, read)
	case run < remove:
		t.Fatalf("does not read, remove, run: run is %v, want at least %v", run, remove)
	}
}

// For every script, PowerShell reads the quoted string as that script, and the string does not end
// inside it.
func TestQuotingIsLossless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringOf(rapid.RuneFrom([]rune("ab'\"`$\n{}()‘’‚‛é€𝄞\ufeff"))).Draw(t, "script")
		args, ok := powershell.Args(want)
		if !ok {
			t.Skip("too long")
		}
		text, err := powershell.Decode(args[len(args)-1])
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(text, "$swdtScript = '")
		if !ok {
			t.Fatalf("no script in %q", text)
		}
		got, after := unquote(rest)
		if want := strings.TrimPrefix(want, "\ufeff"); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if !strings.HasPrefix(after, "\ntry {") {
			t.Fatalf("the string ends too early, before %q", after)
		}
	})
}

// unquote reads a single-quoted string as PowerShell's tokenizer does.
func unquote(s string) (content, rest string) {
	const quotes = "'\u2018\u2019\u201a\u201b"
	var b strings.Builder
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		if strings.ContainsRune(quotes, runes[i]) {
			if i+1 >= len(runes) || !strings.ContainsRune(quotes, runes[i+1]) {
				return b.String(), string(runes[i+1:])
			}
			i++
		}
		b.WriteRune(runes[i])
	}
	return b.String(), ""
}

func TestText(t *testing.T) {
	const want = "Write-Host 'grüß 𝄞'\r\n"
	encode := func(little bool) []byte {
		b := []byte{0xfe, 0xff}
		if little {
			b = []byte{0xff, 0xfe}
		}
		for _, u := range utf16.Encode([]rune(want)) {
			if little {
				b = append(b, byte(u), byte(u>>8))
			} else {
				b = append(b, byte(u>>8), byte(u))
			}
		}
		return b
	}
	for name, file := range map[string][]byte{
		"UTF-8": []byte(want), "UTF-8 with BOM": []byte("\ufeff" + want),
		"UTF-16LE": encode(true), "UTF-16BE": encode(false),
	} {
		switch got, err := powershell.Text(file); {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case got != want:
			t.Errorf("%s: got is %q, want %q", name, got, want)
		}
	}
	if text, err := powershell.Text([]byte("gr\xfc\xdf")); err == nil {
		t.Errorf("Latin-1 was taken for %q", text)
	}
}

const document = "#< CLIXML\r\n" + `<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">` +
	`<Obj S="progress" RefId="0"><TN RefId="0"><T>System.Management.Automation.PSCustomObject</T></TN><MS><I64 ` +
	`N="SourceId">1</I64><PR N="Record"><AV>Preparing modules for first use.</AV></PR></MS></Obj>` +
	`<S S="Error">throw : no &lt;such&gt; thing_x000D__x000A_</S><S S="Error">At line:1 char:1_x000D__x000A_</S>` +
	`<S S="warning">old_x005F_name</S></Objs>`

const decoded = "throw : no <such> thing\r\nAt line:1 char:1\r\nWARNING: old_name\r\n"

func TestDecoderAtEverySplit(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"alone":              {document, decoded},
		"with text around":   {"before\n" + document + "after #< CLI", "before\n" + decoded + "after #< CLI"},
		"two, one marker":    {document + strings.TrimPrefix(document, "#< CLIXML\r\n"), decoded + decoded},
		"two":                {document + document, decoded + decoded},
		"cut off":            {document[:200], document[:200]},
		"no document at all": {"1 < 2 # 3 <Objs", "1 < 2 # 3 <Objs"},
		"broken document": {"#< CLIXML\r\n<Objs Version=\"1\"><S></Objs>",
			"#< CLIXML\r\n<Objs Version=\"1\"><S></Objs>"},
	} {
		for split := range len(c.in) + 1 {
			var out bytes.Buffer
			d := powershell.NewDecoder(&out)
			for _, part := range []string{c.in[:split], c.in[split:]} {
				if n, err := d.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("%s: wrote %d of %d: %v", name, n, len(part), err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Fatalf("%s, split at %d: got %q, want %q", name, split, out.String(), c.want)
			}
		}
	}
}

func TestDecoderLetsTextPassAtOnce(t *testing.T) {
	var out bytes.Buffer
	d := powershell.NewDecoder(&out)
	if _, err := d.Write([]byte("downloading 1 of 3\n")); err != nil {
		t.Fatal(err)
	}
	if out.String() != "downloading 1 of 3\n" {
		t.Fatalf("kept back: %q", out.String())
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(document)
	f.Add("#< CLIXML\r\n<Objs")
	f.Fuzz(func(t *testing.T, in string) {
		var out bytes.Buffer
		d := powershell.NewDecoder(&out)
		if _, err := d.Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(in, "</Objs>") && out.String() != in {
			t.Fatalf("text was changed: %q became %q", in, out.String())
		}
	})
}
