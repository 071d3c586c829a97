package golden_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/testing/winsetup"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/firstboot"
	"github.com/swdt-dev/swdt/internal/vm/golden"
	"github.com/swdt-dev/swdt/internal/vm/media"
	"github.com/swdt-dev/swdt/internal/vm/media/mediatest"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// named returns the document of another VM.
func named(d config.Document, name string) config.Document {
	d.Node.Metadata.Name = name
	return d
}

// cd returns the content of the CD in a VM's drive.
func cd(t *testing.T, m vm.Report) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(m.Folder, "config.iso"))
	check(t, err)
	return string(content)
}

// VMs of one image are machines of their own, and the image stays as long as one of them uses it.
func TestVMsOfAnImage(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		first, err := p.machines.Create(ctx, d, ui.Discard{})
		check(t, err)
		second, err := p.machines.Create(ctx, named(d, "a-name-that-is-too-long-for-netbios"), ui.Discard{})
		check(t, err)
		key := p.Keys()[0]
		p.only(t, key)
		if first.Network.MAC == second.Network.MAC || first.Image != filepath.Join(p.root, key, "golden.disk") {
			t.Errorf("%+v, %+v", first, second)
		}
		for _, want := range []struct {
			of   vm.Report
			name string
		}{{first, "<ComputerName>win-1</ComputerName>"}, {second, "<ComputerName>a-name-th"}} {
			public, err := os.ReadFile(want.of.Key + ".pub")
			check(t, err)
			key := strings.Join(strings.Fields(string(public))[:2], " ")
			for _, part := range []string{want.name, key, "FirstLogonCommands"} {
				if !strings.Contains(cd(t, want.of), part) {
					t.Errorf("the CD of %s lacks %q", want.of.Name, part)
				}
			}
		}
		one, err := os.ReadFile(first.PasswordFile)
		check(t, err)
		two, err := os.ReadFile(second.PasswordFile)
		check(t, err)
		if bytes.Equal(one, two) || len(one) < 20 {
			t.Errorf("the passwords are %q and %q", one, two)
		}

		var used *golden.InUseError
		if err := p.Remove(ctx, key, ui.Discard{}); !errors.As(err, &used) ||
			!slices.Equal(used.VMs, []string{"a-name-that-is-too-long-for-netbios", "win-1"}) {
			t.Errorf("remove: %v", err)
		}
		list, err := p.List(ctx)
		check(t, err)
		if diff := cmp.Diff([]string{"a-name-that-is-too-long-for-netbios", "win-1"}, list.Images[0].UsedBy); diff != "" {
			t.Error(diff)
		}
		for _, name := range []string{first.Name, second.Name} {
			_, err := p.machines.Delete(ctx, name, ui.Discard{})
			check(t, err)
		}
		check(t, p.Remove(ctx, key, ui.Discard{}))
		p.only(t)
	})
}

// The CD with the password is emptied once its script has succeeded, and not before.
func TestTheFirstCDIsEmptied(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		made, err := p.machines.Create(ctx, d, ui.Discard{})
		check(t, err)
		full := cd(t, made)
		m := vm.Machine{Folder: made.Folder}
		for _, step := range []struct {
			sent  string
			empty bool
		}{
			{"", false},
			{"SWDT stage=sshd begin\r\nSWDT exit=1 failed: sshd\r\n", false},
			{strings.Repeat("noise", 1<<17) + "\r\nSWDT stage=sshd ok\r\nSWDT exit=0\r\n", true},
			{"", true},
		} {
			_, err := p.machines.Start(ctx, "win-1", ui.Discard{})
			check(t, err)
			check(t, simulatedvm.Send(m, step.sent))
			_, err = p.machines.Stop(ctx, "win-1", vm.StopOptions{}, ui.Discard{})
			check(t, err)
			now := cd(t, made)
			if empty := now != full; empty != step.empty {
				t.Errorf("after %.40q the CD is empty: %t", step.sent, empty)
			}
			if step.empty && strings.Contains(now, "AdministratorPassword") {
				t.Error("the CD still has the password")
			}
		}
	})
}

// A VM that runs gets the empty CD as soon as swdt sees that the script has succeeded: swdt vm start --wait waits for
// that, and any later start or snapshot looks. If the drive cannot be changed, the next command tries again.
func TestTheFirstCDIsEmptiedWhileTheVMRuns(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	made, err := p.machines.Create(t.Context(), d, ui.Discard{})
	check(t, err)
	full, changes, fault := cd(t, made), 0, errors.New("the drive is stuck")
	p.driver.Fault = func(operation string, _ vm.Machine) error {
		if operation != "change a CD" {
			return nil
		}
		if changes++; changes == 1 {
			return fault
		}
		return nil
	}
	started, err := p.machines.Start(t.Context(), "win-1", ui.Discard{})
	check(t, err)
	listener, err := net.Listen("tcp", started.Address)
	check(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-test\r\n"))
			_ = conn.Close()
			_ = simulatedvm.Send(vm.Machine{Folder: made.Folder}, "SWDT exit=0\r\n")
		}
	}()
	if _, err := p.machines.Await(t.Context(), "win-1", ui.Discard{}); !errors.Is(err, fault) {
		t.Errorf("a drive that cannot be changed: %v", err)
	}
	if _, err := p.machines.Save(t.Context(), "win-1", "live", ui.Discard{}); err != nil || changes != 2 {
		t.Errorf("a snapshot: %v, %d changes", err, changes)
	}
	if now := cd(t, made); now == full || strings.Contains(now, "AdministratorPassword") {
		t.Error("the CD of the VM that runs still has the password")
	}
	_, err = p.machines.Await(t.Context(), "win-1", ui.Discard{})
	check(t, err)
	_, err = p.machines.Start(t.Context(), "win-1", ui.Discard{})
	if err != nil || changes != 2 {
		t.Errorf("again: %v, %d changes", err, changes)
	}
}

// A snapshot of a VM that was never started needs the CD of the first start again.
func TestTheFirstCDStaysForASnapshot(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		made, err := p.machines.Create(ctx, d, ui.Discard{})
		check(t, err)
		full := cd(t, made)
		start := func() {
			_, err = p.machines.Start(ctx, "win-1", ui.Discard{})
			check(t, err)
			check(t, simulatedvm.Send(vm.Machine{Folder: made.Folder}, "SWDT exit=0\r\n"))
			_, err = p.machines.Stop(ctx, "win-1", vm.StopOptions{}, ui.Discard{})
			check(t, err)
		}
		_, err = p.machines.Save(ctx, "win-1", "fresh", ui.Discard{})
		check(t, err)
		start()
		if cd(t, made) != full {
			t.Error("the CD is empty, and the snapshot needs it")
		}
		_, err = p.machines.RemoveSnapshot(ctx, "win-1", "fresh", ui.Discard{})
		check(t, err)
		start()
		if cd(t, made) == full {
			t.Error("the CD stays without a snapshot")
		}
	})
}

// The node's own key may log in, also if its private key has a passphrase.
func TestTheNodesKeyMayLogIn(t *testing.T) {
	p, iso := newPlace(t), mediatest.WindowsISO(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	check(t, err)
	path := filepath.Join(t.TempDir(), "id")
	check(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewPublicKey(public)
	check(t, err)
	d := document(t, iso)
	d.Node.Spec.Credentials.PrivateKey = path
	missing := named(document(t, iso), "win-2")
	missing.Node.Spec.Credentials.PrivateKey = path + ".none"
	synctest.Test(t, func(t *testing.T) {
		made, err := p.machines.Create(t.Context(), d, ui.Discard{})
		check(t, err)
		if line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))); !strings.Contains(cd(t, made), line) {
			t.Error("the CD lacks the node's key")
		}
		var refused *config.Error
		if _, err := p.machines.Create(t.Context(), missing, ui.Discard{}); !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
		if p.machines.Exist("win-2") {
			t.Error("a VM was made that nothing can log in to")
		}
	})
}

func TestAPlanNamesTheImageThatWouldBeBuilt(t *testing.T) {
	p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
	synctest.Test(t, func(t *testing.T) {
		plan, err := p.machines.Plan(t.Context(), d, ui.Discard{})
		check(t, err)
		if !plan.BuildsImage || plan.Record.Image.Key == "" {
			t.Errorf("%+v", plan)
		}
		p.only(t)
		_, err = p.build(t, d)
		check(t, err)
		again, err := p.machines.Plan(t.Context(), d, ui.Discard{})
		check(t, err)
		if again.BuildsImage || len(again.Command) == 0 {
			t.Errorf("builds an image: %t, command %q; want a command without", again.BuildsImage, again.Command)
		}
		if got, want := again.Record.Image.Key, plan.Record.Image.Key; got != want {
			t.Errorf("the image is %s, want %s", got, want)
		}
	})
}

// At the end of the first start the guest has another password than that of the CD, which reaches swdt sealed. The
// stand-in of the script makes it as .NET does.
func TestTheFirstStartReplacesThePassword(t *testing.T) {
	for what, test := range map[string]struct {
		fail   string
		forged bool
		change bool
	}{
		"it succeeds":                         {change: true},
		"a required stage fails":              {fail: "sshd"},
		"the stage itself fails":              {fail: "password"},
		"an account of the guest seals a lie": {forged: true},
	} {
		p, d := newPlace(t), document(t, mediatest.WindowsISO(t))
		made, err := p.machines.Create(t.Context(), d, ui.Discard{})
		check(t, err)
		ofCD, err := os.ReadFile(made.PasswordFile)
		check(t, err)
		script := firstScript(t, made)
		_, err = p.machines.Start(t.Context(), "win-1", ui.Discard{})
		check(t, err)
		var serial strings.Builder
		script.Run(test.fail, false, func(line string) {
			if sealed, _, found := strings.Cut(line, "sealed "); found && test.forged {
				line = sealed + "sealed " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 256))
			}
			serial.WriteString("\r\n" + line + "\r\n")
		})
		check(t, simulatedvm.Send(vm.Machine{Folder: made.Folder}, serial.String()))
		_, err = p.machines.Stop(t.Context(), "win-1", vm.StopOptions{}, ui.Discard{})
		check(t, err)

		now, err := os.ReadFile(made.PasswordFile)
		check(t, err)
		want := strings.TrimSpace(string(ofCD))
		if test.change {
			want = script.Password()
		}
		if got := strings.TrimSpace(string(now)); got != want || want == "" {
			t.Errorf("%s: the password is %q, want %q", what, got, want)
		}
		_, err = os.Stat(filepath.Join(made.Folder, "password.key"))
		if kept := err == nil; kept != (test.fail != "") {
			t.Errorf("%s: the key of the password is there: %t", what, kept)
		}
	}
}

// firstScript returns the script on the CD of a VM's first start.
func firstScript(t *testing.T, made vm.Report) winsetup.Script {
	t.Helper()
	file, err := os.Open(filepath.Join(made.Folder, "config.iso"))
	check(t, err)
	t.Cleanup(func() { _ = file.Close() })
	info, err := file.Stat()
	check(t, err)
	files, err := media.Open(file, info.Size())
	check(t, err)
	script, err := winsetup.FindScript(winsetup.Machine{Drives: []winsetup.Drive{{FS: files}}}, firstboot.FileName)
	check(t, err)
	return script
}
