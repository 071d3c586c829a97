package answer_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/answer"
)

var update = flag.Bool("update", false, "write the goldens anew")

const password = "Correct-Horse+7"

// options returns answers that use everything.
func options(release answer.Release, core bool) answer.Options {
	return answer.Options{
		Release: release, Core: core, Index: 1, Language: "en-US", ComputerName: "win-node-1",
		Password: answer.NewPassword(password), DriverFolder: "drivers",
		FirstLogon: []answer.Command{{Line: `powershell.exe -EncodedCommand ZQB4AGkAdAA=`, Description: "Prepare the node"}},
	}
}

// files returns answer files of all kinds, by the names of their goldens.
func files(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	put := func(name string, file []byte, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = file
	}
	for _, release := range answer.Releases() {
		for _, core := range []bool{true, false} {
			name := string(release)
			switch {
			case release == answer.Windows11 && core:
				continue
			case release != answer.Windows11 && core:
				name += "-core"
			case release != answer.Windows11:
				name += "-desktop"
			}
			file, err := answer.Setup(options(release, core))
			put(name, file, err)
			file, err = answer.Generalized(options(release, core))
			put(name+"-generalized", file, err)
		}
	}
	o := options(answer.Server2022, false)
	o.Index, o.Language, o.Keyboard, o.UserLocale = 4, "de-DE", "0407:00000407", "de-AT"
	o.TimeZone, o.ProductKey, o.DriverFolder = "W. Europe Standard Time", "AAAAA-BBBBB-CCCCC-DDDDD-EEEEE", ""
	o.RemoteDesktop = true
	file, err := answer.Setup(o)
	put("2022-german-remote-desktop", file, err)
	file, err = answer.Sysprep()
	put("sysprep", file, err)
	return out
}

func TestGoldens(t *testing.T) {
	for name, file := range files(t) {
		path := filepath.Join("testdata", name+".xml")
		if *update {
			if err := os.WriteFile(path, file, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(file)); diff != "" {
			t.Errorf("%s (-golden +written)\n%s", name, diff)
		}
	}
}

// validate runs xmllint with the schema of the generic grammar.
func validate(t *testing.T, file []byte) (string, bool) {
	t.Helper()
	xmllint, err := exec.LookPath("xmllint")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("%v; run scripts/install-test-deps.sh", err)
	case err != nil:
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "answer.xml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", filepath.Join("testdata", "unattend.xsd"), path).CombinedOutput()
	return string(out), err == nil
}

func TestSchema(t *testing.T) {
	for name, file := range files(t) {
		if out, ok := validate(t, file); !ok {
			t.Errorf("%s: %s", name, out)
		}
	}
	file := string(files(t)["2022-core"])
	for _, test := range []struct{ from, to string }{
		{`pass="specialize"`, `pass="specialise"`},
		{`pass="specialize"`, `pass="windowsPE"`},
		{`publicKeyToken="31bf3856ad364e35"`, ``},
		{`versionScope="nonSxS"`, `versionScope="SxS"`},
		{`name="Microsoft-Windows-Deployment"`, `name="Microsoft-Windows-Shell-Setup"`},
		{`processorArchitecture="amd64"`, `processorArchitecture="x64"`},
		{`xmlns="urn:schemas-microsoft-com:unattend"`, `xmlns="urn:other"`},
	} {
		broken := strings.Replace(file, test.from, test.to, 1)
		if broken == file {
			t.Errorf("the file has no %s", test.from)
		}
		if _, ok := validate(t, []byte(broken)); ok {
			t.Errorf("the schema accepts %s", test.to)
		}
	}
}

// decoded returns the password in a Value of an answer file, without the element's name.
func decoded(t *testing.T, value, element string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw)%2 != 0 {
		t.Fatalf("%q: %v", value, err)
	}
	units := make([]uint16, len(raw)/2)
	for n := range units {
		units[n] = binary.LittleEndian.Uint16(raw[2*n:])
	}
	text, ok := strings.CutSuffix(string(utf16.Decode(units)), element)
	if !ok {
		t.Errorf("%q does not end in %s", string(utf16.Decode(units)), element)
	}
	return text
}

func TestPasswordsComeBack(t *testing.T) {
	for _, text := range []string{password, `<&>"' Ää1`, "пароль-Пароль-1", "\U0001f600Smile-7"} {
		for _, release := range answer.Releases() {
			o := options(release, false)
			o.Password = answer.NewPassword(text)
			file, err := answer.Setup(o)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, s := range settings(t, file) {
				if !strings.HasSuffix(s.path, "Password/Value") {
					continue
				}
				count++
				if got := decoded(t, s.value, s.in); got != text {
					t.Errorf("%s: %s holds %q, not %q", release, s.path, got, text)
				}
			}
			if count < 2 {
				t.Errorf("%s: %d passwords", release, count)
			}
		}
	}
	// Known values: those of an element that is called Password, and of AdministratorPassword.
	file := files(t)["2022-core"]
	for path, want := range map[string]string{
		"AutoLogon/Password/Value":                 "Correct-Horse+7Password",
		"UserAccounts/AdministratorPassword/Value": "Correct-Horse+7AdministratorPassword",
	} {
		if got := values(settings(t, file), path); len(got) != 1 || decoded(t, got[0], "") != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// Setup and the first start ask for nothing that the files do not answer.
func TestEveryPromptIsAnswered(t *testing.T) {
	asked := map[string]string{ // a setting, and the value that keeps its page from being shown
		"HideEULAPage": "true", "HideOEMRegistrationScreen": "true", "HideOnlineAccountScreens": "true",
		"HideWirelessSetupInOOBE": "true", "HideLocalAccountScreen": "true", "ProtectYourPC": "3",
	}
	for name, file := range files(t) {
		if name == "sysprep" {
			continue
		}
		all := settings(t, file)
		need := func(path, value string) {
			t.Helper()
			got := values(all, path)
			if len(got) == 0 || value != "" && got[0] != value {
				t.Errorf("%s: %s is %q", name, path, got)
			}
		}
		for page, value := range asked {
			need("OOBE/"+page, value)
		}
		need("UserAccounts/AdministratorPassword/Value", "")
		need("AutoLogon/Enabled", "true")
		need("AutoLogon/LogonCount", "1")
		need("ComputerName", "win-node-1")
		for _, path := range []string{"InputLocale", "SystemLocale", "UILanguage", "UserLocale"} {
			need(path, "")
		}
		if strings.HasPrefix(name, string(answer.Windows11)) {
			need("UserAccounts/LocalAccounts/LocalAccount/Name", answer.SetupAccount)
		} else if len(values(all, "UserAccounts/LocalAccounts/LocalAccount/Name")) > 0 {
			t.Errorf("%s makes an account that no server asks for", name)
		}
		if !strings.HasSuffix(name, "-generalized") {
			need("UserData/AcceptEula", "true")
			need("UserData/ProductKey/WillShowUI", "")
			need("SetupUILanguage/UILanguage", "")
			need("DiskConfiguration/Disk/WillWipeDisk", "true")
			need("ImageInstall/OSImage/InstallFrom/MetaData/Value", "")
			need("DynamicUpdate/Enable", "false")
		}
		manager := len(values(all, "DoNotOpenServerManagerAtLogon")) == 1
		if server := strings.HasPrefix(name, "20") && !strings.Contains(name, "-core"); manager != server {
			t.Errorf("%s: settings for the Server Manager: %t", name, manager)
		}
	}
}

func TestPartitionsAreConsistent(t *testing.T) {
	for name, file := range files(t) {
		if strings.HasSuffix(name, "-generalized") || name == "sysprep" {
			continue
		}
		all := settings(t, file)
		const create, modify = "DiskConfiguration/Disk/CreatePartitions/CreatePartition/", "DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/"
		orders, types := values(all, create+"Order"), values(all, create+"Type")
		if diff := cmp.Diff([]string{"EFI", "MSR", "Primary"}, types); diff != "" {
			t.Errorf("%s: types (-want +written)\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"1", "2", "3"}, orders); diff != "" {
			t.Errorf("%s: order (-want +written)\n%s", name, diff)
		}
		if diff := cmp.Diff(orders, values(all, modify+"PartitionID")); diff != "" {
			t.Errorf("%s: made and used partitions (-made +used)\n%s", name, diff)
		}
		target := values(all, "ImageInstall/OSImage/InstallTo/PartitionID")
		if at := slices.Index(orders, target[0]); at < 0 || types[at] != "Primary" {
			t.Errorf("%s: Windows goes onto partition %s of %q", name, target, types)
		}
		if a, b := values(all, "DiskConfiguration/Disk/DiskID"), values(all, "ImageInstall/OSImage/InstallTo/DiskID"); !slices.Equal(a, b) {
			t.Errorf("%s: disk %s is made, and %s used", name, a, b)
		}
		if got := values(all, create+"Extend"); !slices.Equal(got, []string{"true"}) {
			t.Errorf("%s: Extend is %q", name, got)
		}
	}
}

func TestSysprepHoldsNoSecret(t *testing.T) {
	for _, s := range settings(t, files(t)["sysprep"]) {
		if s.pass != "generalize" {
			t.Errorf("sysprep's file, which stays in the image, has %s of %s", s.path, s.pass)
		}
	}
}

func TestRefusedValues(t *testing.T) {
	for _, test := range []struct {
		field  string
		change func(*answer.Options)
	}{
		{"release", func(o *answer.Options) { o.Release = "2016" }},
		{"index", func(o *answer.Options) { o.Index = 0 }},
		{"index", func(o *answer.Options) { o.Index = -1 }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "sixteen-letters-" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "abcdefghijklmnop" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "12345" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "-a" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "a-" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "a_b" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "a.b" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "knötchen" }},
		{"computer name", func(o *answer.Options) { o.ComputerName = "a\n" }},
		{"time zone", func(o *answer.Options) { o.TimeZone = "Europe/Berlin" }},
		{"time zone", func(o *answer.Options) { o.TimeZone = "UTC\n" }},
		{"time zone", func(o *answer.Options) { o.TimeZone = "UTC\nW. Europe Standard Time" }},
		{"language", func(o *answer.Options) { o.Language = "" }},
		{"language", func(o *answer.Options) { o.Language = "en_US" }},
		{"keyboard", func(o *answer.Options) { o.Keyboard = "0409" }},
		{"userLocale", func(o *answer.Options) { o.UserLocale = "german" }},
		{"password", func(o *answer.Options) { o.Password = answer.Password{} }},
		{"password", func(o *answer.Options) { o.Password = answer.NewPassword("Short-1") }},
		{"password", func(o *answer.Options) { o.Password = answer.NewPassword("onlylowercase1") }},
		{"password", func(o *answer.Options) { o.Password = answer.NewPassword("Administrator-1") }},
		{"password", func(o *answer.Options) { o.Password = answer.NewPassword("Line\nBreak-1") }},
		{"password", func(o *answer.Options) { o.Password = answer.NewPassword("Aa1-" + strings.Repeat("x", 124)) }},
		{"productKey", func(o *answer.Options) { o.ProductKey = "12345" }},
		{"driver folder", func(o *answer.Options) { o.DriverFolder = `..\x` }},
		{"driver folder", func(o *answer.Options) { o.DriverFolder = `a b` }},
		{"line", func(o *answer.Options) { o.FirstLogon[0].Line = "" }},
		{"line", func(o *answer.Options) { o.FirstLogon[0].Line = strings.Repeat("x", 1025) }},
		{"line", func(o *answer.Options) { o.FirstLogon[0].Line = "a\r\nb" }},
		{"description", func(o *answer.Options) { o.FirstLogon[0].Description = "a\x00" }},
		{"commands", func(o *answer.Options) { o.FirstLogon = make([]answer.Command, 21) }},
	} {
		o := options(answer.Server2022, true)
		test.change(&o)
		file, err := answer.Setup(o)
		if err == nil || file != nil || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s was accepted, or the error does not name it: %v", test.field, err)
		}
		if text := o.Password.Reveal(); err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("an error has the password: %v", err)
		}
		if err != nil && o.ProductKey != "" && strings.Contains(err.Error(), o.ProductKey) {
			t.Errorf("an error has the product key: %v", err)
		}
	}
	_, err := answer.Setup(answer.Options{})
	for _, field := range []string{"release", "index", "computer name", "language", "password"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("the error of empty options lacks %s: %v", field, err)
		}
	}
}

// hostile are values that would end an element, a string or a line, if anything took them
// for a part of the file.
var hostile = []string{
	`"><x/>`, `]]>`, `</ComputerName><ComputerName>other`, `&amp;&lt;`, `&#10;`, "\n<settings>", "a'b", `a"b`, "$(calc)", "`calc`",
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
		"InputLocale":  func(o *answer.Options, v string) { o.Keyboard = v },
		"UserLocale":   func(o *answer.Options, v string) { o.UserLocale = v },
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
			if field == "CommandLine" && !slices.Contains(values(all, "FirstLogonCommands/SynchronousCommand/CommandLine"), strings.TrimSpace(value)) {
				t.Errorf("%s: %q comes back as %q", field, value, values(all, "FirstLogonCommands/SynchronousCommand/CommandLine"))
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

func TestGeneratedPasswords(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		p := answer.GeneratePassword()
		o := options(answer.Server2025, true)
		o.Password = p
		if _, err := answer.Setup(o); err != nil {
			t.Fatal(err)
		}
		text := p.Reveal()
		if len(text) != 24 || seen[text] {
			t.Errorf("a generated password has %d characters, or is not the first of its kind", len(text))
		}
		seen[text] = true
		for _, class := range []string{"ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnpqrstuvwxyz", "23456789", "-_.:+="} {
			if !strings.ContainsAny(text, class) {
				t.Errorf("a generated password has none of %s", class)
			}
		}
	}
}

func TestNothingPrintsThePassword(t *testing.T) {
	o := options(answer.Server2022, true)
	inner := struct{ o answer.Options }{o} // fmt calls no methods of unexported fields
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, o, &o, o.Password, inner)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("options", "o", o, "password", o.Password)
	}
	fmt.Fprint(&out, fmt.Errorf("%v: %w", o.Password, os.ErrExist))
	for _, part := range []string{"Correct", "Horse", fmt.Sprintf("%x", "Correct")} {
		if strings.Contains(out.String(), part) {
			t.Errorf("the password is in %s", out.String())
		}
	}
}
