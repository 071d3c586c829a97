package winsetup_test

import (
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
	"github.com/swdt-dev/swdt/internal/vm/media"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
)

const diskBytes = 64 << 30

// key returns a line of authorized_keys.
func key(t *testing.T) string {
	t.Helper()
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(make([]byte, 32)).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

// options returns those of a CD that installs from the media that mediatest makes.
func options(t *testing.T) configcd.Options {
	t.Helper()
	return configcd.Options{
		Answer: answer.Options{
			Release: answer.Server2022, Core: true, Index: 1, Language: "en-US", ComputerName: "win-1",
			Password: answer.NewPassword("Correct-Horse+7"),
		},
		Keys:    []string{key(t)},
		OpenSSH: configcd.File{FS: fstest.MapFS{"o.msi": {Data: []byte("msi")}}, Path: "o.msi"},
		End:     firstboot.Generalize,
		Time:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// withDrivers adds drivers to the CD.
func withDrivers(o configcd.Options) configcd.Options {
	o.Drivers = fstest.MapFS{
		"viostor/2k22/amd64/viostor.inf": {Data: []byte("[Version]")},
		"NetKVM/2k22/amd64/netkvm.inf":   {Data: []byte("[Version]")},
	}
	return o
}

// configCD writes a CD, and returns its files.
func configCD(t *testing.T, o configcd.Options) fs.FS {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "config.iso")
	if err := configcd.Write(file, o); err != nil {
		t.Fatal(err)
	}
	return opened(t, file)
}

// opened returns the files of an ISO.
func opened(t *testing.T, file string) fs.FS {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	disc, err := media.Open(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return disc
}

// machine returns a machine with Windows' media and a config CD.
func machine(t *testing.T, media, config fs.FS) winsetup.Machine {
	t.Helper()
	drives := []winsetup.Drive{{Letter: "D", FS: media}}
	if config != nil {
		drives = append(drives, winsetup.Drive{Letter: "E", FS: config})
	}
	return winsetup.Machine{Drives: drives, DiskBytes: diskBytes}
}

// changed is a CD with a change of one file.
func changed(t *testing.T, cd fs.FS, name, old, replacement string) fs.FS {
	t.Helper()
	text, err := fs.ReadFile(cd, name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q", name, old)
	}
	return fstest.MapFS{name: {Data: []byte(strings.ReplaceAll(string(text), old, replacement))}}
}

func TestSetupInstallsWhatTheConfigCDDescribes(t *testing.T) {
	media := opened(t, mediatest.WindowsISO(t))
	plan, err := winsetup.Install(machine(t, media, configCD(t, options(t))))
	if err != nil {
		t.Fatal(err)
	}
	const mebibyte = 1 << 20
	want := winsetup.Plan{
		Edition: "Windows Server 2022 SERVERSTANDARDCORE", Network: true,
		Partitions: []winsetup.Partition{
			{Kind: "EFI", Offset: mebibyte, Size: 260 * mebibyte},
			{Kind: "MSR", Offset: 261 * mebibyte, Size: 16 * mebibyte},
			{Kind: "Primary", Windows: true, Offset: 277 * mebibyte, Size: diskBytes - 278*mebibyte},
		},
		Logon: winsetup.Logon{ComputerName: "win-1", Password: "Correct-Horse+7", Script: firstboot.FileName},
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Each screen is one that swdt's users may meet, so its cause must be found by the imitation.
func TestSetupWaitsAtAScreen(t *testing.T) {
	iso := opened(t, mediatest.WindowsISO(t))
	plain := configCD(t, options(t))
	const name = answer.SetupFile
	for title, test := range map[string]struct {
		machine winsetup.Machine
		want    string
	}{
		"no media":  {winsetup.Machine{}, "media driver"},
		"no answer": {machine(t, iso, nil), "Language to install"},
		"no disk":   {winsetup.Machine{Drives: machine(t, iso, plain).Drives}, "couldn't find any drives"},
		"virtio disk without drivers": {
			func() winsetup.Machine { m := machine(t, iso, plain); m.VirtioDisk = true; return m }(),
			"couldn't find any drives",
		},
		"another index": {
			machine(t, iso, changed(t, plain, name, "<Value>1</Value>", "<Value>5</Value>")), `/IMAGE/INDEX "5"`,
		},
		"another language": {
			machine(t, iso, changed(t, plain, name, "<UILanguage>en-US", "<UILanguage>de-DE")), `"de-DE"`,
		},
		"license": {machine(t, iso, changed(t, plain, name, "<AcceptEula>true", "<AcceptEula>false")), "read this"},
		"key of an evaluation": {
			machine(t, iso, changed(t, plain, name, "<ProductKey>", "<ProductKey><Key>AAAAA</Key>")), "product key entered",
		},
		"broken file": {machine(t, iso, changed(t, plain, name, "</unattend>", "")), "could not parse"},
		"other namespace": {machine(t, iso, changed(t, plain, name, "urn:schemas-microsoft-com:unattend", "urn:x")),
			"its root"},
		"other processor": {machine(t, iso, changed(t, plain, name, `"amd64"`, `"arm64"`)), "Language"},
		"partition": {
			machine(t, iso, changed(t, plain, name, "<PartitionID>3<", "<PartitionID>2<")), "partition 2",
		},
		"missing drivers": {
			machine(t, iso, changed(t, configCD(t, withDrivers(options(t))), name, `E:\drivers`, `E:\absent`)),
			"DriverPaths",
		},
		"small disk": {
			func() winsetup.Machine { m := machine(t, iso, plain); m.DiskBytes = 200 << 20; return m }(), "does not fit",
		},
		"page of the first start": {
			machine(t, iso, changed(t, plain, name, "<HideEULAPage>true", "<HideEULAPage>false")), "HideEULAPage",
		},
		"password": {machine(t, iso, changed(t, plain, name, "<LogonCount>1", "<LogonCount>0")), "password is incorrect"},
		"long name": {
			machine(t, iso, changed(t, plain, name, ">win-1<", ">a-name-of-sixteen<")), "computer's name",
		},
	} {
		t.Run(title, func(t *testing.T) {
			_, err := winsetup.Install(test.machine)
			var screen *winsetup.Screen
			if !errors.As(err, &screen) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want a screen with %q", err, test.want)
			}
		})
	}
}

func TestSetupFindsDriversOnTheConfigCD(t *testing.T) {
	m := machine(t, opened(t, mediatest.WindowsISO(t)), configCD(t, withDrivers(options(t))))
	m.VirtioDisk, m.VirtioNetwork = true, true
	plan, err := winsetup.Install(m)
	if err != nil || !plan.Network {
		t.Errorf("%+v, %v", plan, err)
	}
	m = machine(t, m.Drives[0].FS, configCD(t, options(t)))
	m.VirtioNetwork = true
	if plan, err := winsetup.Install(m); err != nil || plan.Network {
		t.Errorf("without a driver of the network card: %+v, %v", plan, err)
	}
}

func TestModes(t *testing.T) {
	folder := mediatest.WindowsFolder(t)
	for _, mode := range append(winsetup.Modes(), "other") {
		t.Run(string(mode), func(t *testing.T) {
			mediatest.Write(t, folder, map[string]string{winsetup.ModeFile: `{"mode": "` + string(mode) + `"}`})
			plan, err := winsetup.Install(machine(t, os.DirFS(folder), configCD(t, options(t))))
			var screen *winsetup.Screen
			waits := map[winsetup.Mode]string{
				winsetup.WrongEdition: "operating system", winsetup.IgnoreAnswers: "Language", winsetup.NoDisk: "drives",
			}[mode]
			switch {
			case mode == "other":
				if err == nil || errors.As(err, &screen) {
					t.Errorf("%v, want an error", err)
				}
			case waits != "":
				if !errors.As(err, &screen) || !strings.Contains(err.Error(), waits) {
					t.Errorf("%v, want a screen with %q", err, waits)
				}
			case err != nil, plan.Mode != mode, plan.Network != (mode != winsetup.NoNetwork):
				t.Errorf("%+v, %v", plan, err)
			}
		})
	}
}

func TestAGeneralizedImageNeedsAnswers(t *testing.T) {
	o := options(t)
	o.FirstStart, o.End = true, firstboot.Stay
	cd := configCD(t, o)
	logon, err := winsetup.FirstStart(winsetup.Machine{Drives: []winsetup.Drive{{Letter: "D", FS: cd}}})
	want := winsetup.Logon{ComputerName: "win-1", Password: "Correct-Horse+7", Script: firstboot.FileName}
	if diff := cmp.Diff(want, logon); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	var screen *winsetup.Screen
	if _, err := winsetup.FirstStart(winsetup.Machine{}); !errors.As(err, &screen) {
		t.Errorf("without a CD: %v, want a screen", err)
	}
}
