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
	*golibvirt.Libvirt
	uri string
}

// define defines a domain and returns the record of the VM that adopts it.
func (l lab) define(t *testing.T, name, description string) vm.Machine {
	t.Helper()
	_, err := l.DomainDefineXMLFlags(description, 0)
	check(t, err)
	m := vm.Machine{
		Version: 1, Name: name, UUID: "to be replaced", Driver: libvirt.Name, Folder: filepath.Join(t.TempDir(), "vm"),
		Domain: name, URI: l.uri,
	}
	t.Cleanup(func() {
		if domain, err := l.DomainLookupByName(name); err == nil {
			_ = l.DomainDestroy(domain) // it may be stopped
			check(t, l.DomainUndefineFlags(domain, golibvirt.DomainUndefineSnapshotsMetadata))
		}
	})
	m, err = libvirt.New().Adopt(t.Context(), m)
	check(t, err)
	return m
}

func (l lab) domain(t *testing.T, m vm.Machine) golibvirt.Domain {
	t.Helper()
	domain, err := l.DomainLookupByName(m.Domain)
	check(t, err)
	return domain
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
	l := lab{d.connect(t, driver), d.uri(driver)}          // open, so that its domains stay
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
				check(t, l.DomainCoreDumpWithFormat(l.domain(t, m), filepath.Join(t.TempDir(), "core"), 0, golibvirt.DumpCrash))
			},
			Reboot: func(t *testing.T, m vm.Machine) { check(t, l.DomainDestroy(l.domain(t, m))) },
			// A domain of this driver has no disk; a snapshot brings its description back, too.
			Write: func(t *testing.T, m vm.Machine, text string) {
				check(t, l.DomainSetMetadata(l.domain(t, m), int32(golibvirt.DomainMetadataDescription), golibvirt.OptString{text},
					nil, nil, golibvirt.DomainAffectConfig))
			},
			Read: func(t *testing.T, m vm.Machine) string {
				text, err := l.DomainGetMetadata(l.domain(t, m), int32(golibvirt.DomainMetadataDescription), nil, golibvirt.DomainAffectConfig)
				if err != nil {
					return "" // it has none
				}
				return text
			},
		}
	}, "Ignored", installs, "Published")
}
