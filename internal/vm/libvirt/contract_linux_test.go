package libvirt_test

import (
	"crypto/rand"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/libvirt"
	"github.com/swdt-dev/swdt/internal/vm/vmtest"
)

// lab are domains of one of a daemon's drivers.
type lab struct {
	daemon *daemon
	driver string
}

// do calls work with a connection of its own, since a test may restart the daemon.
func (l lab) do(t *testing.T, work func(*golibvirt.Libvirt)) {
	t.Helper()
	rpc := l.daemon.connect(t, l.driver)
	work(rpc)
	check(t, rpc.Disconnect())
}

// define defines a domain and returns the record of the VM that adopts it. Seldom, once in some eighty
// times, libvirt 9.0 refuses the first domain of a new daemon and names no cause, so define tries again.
func (l lab) define(t *testing.T, name, description string) vm.Machine {
	t.Helper()
	l.do(t, func(rpc *golibvirt.Libvirt) {
		eventually(t, "libvirt takes domain "+name, func() error {
			_, err := rpc.DomainDefineXMLFlags(description, 0)
			if err != nil {
				t.Logf("%v; the daemon's log: %s", err, l.daemon.log())
			}
			return err
		})
	})
	m := vm.Machine{
		Version: 1, Name: name, UUID: "to be replaced", Driver: libvirt.Name, Folder: filepath.Join(t.TempDir(), "vm"),
		Domain: name, URI: l.daemon.uri(l.driver),
	}
	t.Cleanup(func() {
		l.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) {
			_ = rpc.DomainDestroy(domain) // it may be stopped
			check(t, rpc.DomainUndefineFlags(domain, golibvirt.DomainUndefineSnapshotsMetadata))
		})
	})
	m, err := libvirt.New().Adopt(t.Context(), m)
	check(t, err)
	return m
}

// on calls work with the domain of a VM.
func (l lab) on(t *testing.T, m vm.Machine, work func(*golibvirt.Libvirt, golibvirt.Domain)) {
	t.Helper()
	l.do(t, func(rpc *golibvirt.Libvirt) {
		domain, err := rpc.DomainLookupByName(m.Domain)
		check(t, err)
		work(rpc, domain)
	})
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// libvirt's own test driver passes the contract. Its guests obey every request to shut down.
func TestContractOfTheTestDriver(t *testing.T) {
	d := startDaemon(t)
	const driver, installs = "test:///default", "Observed" // the driver does not install
	l := lab{d, driver}
	open := d.connect(t, driver) // its domains stay while a connection is open
	defer func() { check(t, open.Disconnect()) }()
	vmtest.Run(t, func(*testing.T) vmtest.Fixture {
		return vmtest.Fixture{
			Driver: libvirt.New(),
			Machine: func(t *testing.T, name string) vm.Machine {
				return l.define(t, name, fmt.Sprintf(`<domain type='test'><name>%s</name><uuid>%s</uuid>
					<memory unit='MiB'>64</memory><vcpu>2</vcpu><os><type>hvm</type></os>
					<devices><interface type='network'><mac address='52:54:00:00:00:07'/><source network='default'/></interface>
					<graphics type='vnc' port='5901' listen='127.0.0.1'/></devices></domain>`, escaped(name), uuid()))
			},
			Crash: func(t *testing.T, m vm.Machine) {
				l.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) {
					check(t, rpc.DomainCoreDumpWithFormat(domain, filepath.Join(t.TempDir(), "core"), 0, golibvirt.DumpCrash))
				})
			},
			Reboot: func(t *testing.T, m vm.Machine) {
				l.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) { check(t, rpc.DomainDestroy(domain)) })
			},
			// A domain of this driver has no disk; a snapshot brings its description back, too.
			Write: func(t *testing.T, m vm.Machine, text string) {
				l.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) {
					check(t, rpc.DomainSetMetadata(domain, int32(golibvirt.DomainMetadataDescription), golibvirt.OptString{text},
						nil, nil, golibvirt.DomainAffectConfig))
				})
			},
			Read: func(t *testing.T, m vm.Machine) (text string) {
				l.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) {
					// The error is that it has none.
					text, _ = rpc.DomainGetMetadata(domain, int32(golibvirt.DomainMetadataDescription), nil,
						golibvirt.DomainAffectConfig)
				})
				return text
			},
		}
	}, "Ignored", installs, "Published")
}
