// Package libvirt is the driver that runs domains of the libvirt on your machine. It adopts a
// domain that exists already, and starts, stops, saves and shows this domain. It never makes,
// changes or deletes a domain, and touches no domain that it has not adopted.
//
// The driver uses libvirt's protocol on the daemon's Unix socket; libvirt's own library is not
// needed. Each method makes a new connection.
//
// The VM's folder has, besides the record of package vm, only libvirt.json. This file records that
// the domain was adopted, and when swdt started the domain, since libvirt does not report that time.
// The driver finds the domain by the UUID that the domain had when swdt adopted it. So the driver
// never takes another domain of the same name for the adopted one.
//
// Trust: the driver checks that the daemon runs as root or as you (on Linux), and bounds the
// daemon's messages; beyond that, it trusts the daemon. The guest is hostile: it chooses the
// addresses that its agent and its DHCP requests report, and the content of its screen.
//
//   - driver.go: the driver and the domain that it adopts
//   - connect.go, frames.go, peer_*.go: the connection to the daemon
//   - domain.go: libvirt's description of a domain
//   - record.go: what is kept in the VM's folder
//   - run.go: start, stop, status
//   - snapshot.go: snapshots
//   - look.go, keys.go, picture.go: screenshots, keys, consoles
//   - address.go: addresses
//   - check.go: what your machine lacks
package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
)

// Name is the driver's name in node files and records.
const Name = "libvirt"

// Driver runs domains of libvirt. It implements vm.Driver and vm.Adopter. The zero value is
// usable.
type Driver struct{}

var _ vm.Adopter = (*Driver)(nil)

// New returns a driver.
func New() *Driver { return &Driver{} }

// Name is the driver's name in node files and records.
func (d *Driver) Name() string { return Name }

// Capabilities returns what the driver can do with libvirt's QEMU domains.
func (d *Driver) Capabilities() vm.Capabilities {
	return vm.Capabilities{LiveSnapshots: true, Crashes: true, Screenshots: true, Keys: true}
}

// AbsentError reports that libvirt has no domain with this name.
type AbsentError struct{ Domain, URI string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("%s has no domain %s; write its name as `virsh -c %s list --all` lists it", e.URI, e.Domain, e.URI)
}

func (e *AbsentError) Unwrap() error { return vm.ErrAbsent }

// Adopt completes the record of a VM with the values of its domain.
func (d *Driver) Adopt(ctx context.Context, m vm.Machine) (vm.Machine, error) {
	return ask(ctx, m.URI, answerLimit, func(c *client) (vm.Machine, error) {
		domain, err := c.DomainLookupByName(m.Domain)
		if hasCode(err, libvirt.ErrNoDomain) {
			return m, &AbsentError{m.Domain, m.URI}
		}
		if err != nil {
			return m, fmt.Errorf("look up the domain: %w", err)
		}
		persistent, err := c.DomainIsPersistent(domain)
		if err != nil {
			return m, fmt.Errorf("look up the domain: %w", err)
		}
		if persistent == 0 {
			return m, fmt.Errorf("domain %s is transient, so it is gone once it stops; define it with `virsh define`", m.Domain)
		}
		described, err := c.describe(domain)
		if err != nil {
			return m, err
		}
		m.UUID = uuidText(domain.UUID)
		described.complete(&m)
		m.Disk = c.diskSize(domain, described)
		return m, nil
	})
}

// Create writes the record in libvirt.json, which says that the domain was adopted.
func (d *Driver) Create(ctx context.Context, m vm.Machine) error {
	if _, err := readRecord(m); err == nil {
		return vm.ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := ask(ctx, m.URI, answerLimit, func(c *client) (libvirt.Domain, error) { return c.domain(m) })
	if err != nil {
		return err
	}
	if err := os.MkdirAll(m.Folder, 0o700); err != nil {
		return err
	}
	return writeRecord(m, record{Domain: m.Domain, UUID: m.UUID})
}

// Delete removes the record in libvirt.json. The domain stays as it is.
func (d *Driver) Delete(_ context.Context, m vm.Machine) error {
	if err := os.Remove(recordPath(m)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// of calls the given function with the adopted domain and its record in libvirt.json. The error is
// ErrAbsent if the domain was not adopted, or no longer exists.
func of[T any](
	ctx context.Context, m vm.Machine, limit limit, work func(*client, libvirt.Domain, record) (T, error),
) (T, error) {
	kept, err := readRecord(m)
	if err != nil {
		var none T
		if errors.Is(err, fs.ErrNotExist) {
			err = vm.ErrAbsent
		}
		return none, err
	}
	return ask(ctx, m.URI, limit, func(c *client) (T, error) {
		domain, err := c.domain(m)
		if err != nil {
			var none T
			return none, err
		}
		return work(c, domain, kept)
	})
}
