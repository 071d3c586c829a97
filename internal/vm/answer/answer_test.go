package answer_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		FirstLogon: []answer.Command{{Line: `powershell.exe -EncodedCommand ZQB4AGkAdAA=`,
			Description: "Prepare the node"}},
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
	o.Index, o.Language = 4, "de-DE"
	o.TimeZone, o.ProductKey, o.DriverFolder = "W. Europe Standard Time", "AAAAA-BBBBB-CCCCC-DDDDD-EEEEE", ""
	file, err := answer.Setup(o)
	put("2022-german", file, err)
	put("sysprep", answer.Sysprep(), nil)
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
	out, err := exec.Command(xmllint, "--noout", "--nonet", "--schema", filepath.Join("testdata", "unattend.xsd"),
		path).CombinedOutput()
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
		const create, modify = "DiskConfiguration/Disk/CreatePartitions/CreatePartition/",
			"DiskConfiguration/Disk/ModifyPartitions/ModifyPartition/"
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
		made, used := values(all, "DiskConfiguration/Disk/DiskID"), values(all, "ImageInstall/OSImage/InstallTo/DiskID")
		if !slices.Equal(made, used) {
			t.Errorf("%s: disk %s is made, and %s used", name, made, used)
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
		if err == nil || file != nil {
			t.Fatalf("%s was accepted: %v, and a file of %d bytes", test.field, err, len(file))
		}
		if !strings.Contains(err.Error(), test.field) {
			t.Errorf("the error does not name %s: %v", test.field, err)
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
