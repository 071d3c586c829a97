package answer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/answer"
)

// hostile are values that would end an element, a string or a line, if anything took them
// for a part of the file.
var hostile = []string{
	`"><x/>`, `]]>`, `</ComputerName><ComputerName>other`, `&amp;&lt;`, `&#10;`, "\n<settings>", "a'b", `a"b`,
	"$(calc)", "`calc`",
	"a\x00b", "\ufeff", "<!--", "<![CDATA[", "\u2028", "%COMPUTERNAME%", "a & calc.exe", "\xff\xfe", "1\u202e2",
}

// A node file that another person wrote sets these values. Whatever they hold, the file
// has the same settings as without, and each value is where it belongs.
func TestHostileValuesStayValues(t *testing.T) {
	base, err := answer.Setup(options(answer.Windows11, false))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]func(*answer.Options, string){
		"ComputerName": func(o *answer.Options, v string) { o.ComputerName = v },
		"TimeZone":     func(o *answer.Options, v string) { o.TimeZone = v },
		"UILanguage":   func(o *answer.Options, v string) { o.Language = v },
		"Password":     func(o *answer.Options, v string) { o.Password = answer.NewPassword("Aa1-" + v + "xyz") },
		"ProductKey":   func(o *answer.Options, v string) { o.ProductKey = v },
		"Path":         func(o *answer.Options, v string) { o.DriverFolder = v },
		"CommandLine":  func(o *answer.Options, v string) { o.FirstLogon[0].Line = v },
		"Description":  func(o *answer.Options, v string) { o.FirstLogon[0].Description = v },
	}
	free := map[string]bool{"Password": true, "CommandLine": true, "Description": true} // others have a form
	for field, change := range fields {
		for _, value := range hostile {
			o := options(answer.Windows11, false)
			change(&o, value)
			file, err := answer.Setup(o)
			if err != nil {
				continue
			}
			if !free[field] {
				t.Errorf("%s: %q was accepted", field, value)
			}
			all := settings(t, file)
			if diff := cmp.Diff(skeleton(settings(t, base)), skeleton(all), cmp.AllowUnexported(setting{})); diff != "" {
				t.Errorf("%s: %q changes the settings\n%s", field, value, diff)
			}
			if field == "CommandLine" && !slices.Contains(values(all,
				"FirstLogonCommands/SynchronousCommand/CommandLine"), strings.TrimSpace(value)) {
				t.Errorf("%s: %q comes back as %q", field, value, values(all,
					"FirstLogonCommands/SynchronousCommand/CommandLine"))
			}
		}
	}
}

func FuzzOptions(f *testing.F) {
	for _, value := range hostile {
		f.Add(value, value, value, value, value)
	}
	f.Add("node", "UTC", "de-DE", "Aa1-aaaaaa", "exit")
	base, err := answer.Setup(options(answer.Windows11, false))
	if err != nil {
		f.Fatal(err)
	}
	want := skeleton(settings(f, base))
	f.Fuzz(func(t *testing.T, name, zone, locale, secret, line string) {
		for field := range 5 {
			o := options(answer.Windows11, false)
			switch field {
			case 0:
				o.ComputerName = name
			case 1:
				o.TimeZone = zone
			case 2:
				o.Language = locale
			case 3:
				o.Password = answer.NewPassword(secret)
			case 4:
				o.FirstLogon[0].Line = line
			}
			file, err := answer.Setup(o)
			if err != nil {
				continue
			}
			if diff := cmp.Diff(want, skeleton(settings(t, file)), cmp.AllowUnexported(setting{})); diff != "" {
				t.Errorf("other settings:\n%s", diff)
			}
		}
	})
}
