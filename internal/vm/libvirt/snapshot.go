package libvirt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
)

const (
	// maxName bounds the name of a snapshot in bytes.
	maxName = 200
	// maxSnapshots bounds how many snapshots of a domain are listed.
	maxSnapshots = 10000
	// mark begins the description of a snapshot that swdt has saved. A time and the snapshot's name
	// follow the mark.
	mark = "swdt "
	// tagPrefix begins the names that tagOf makes from hashes.
	tagPrefix = "swdt-"
)

// tagOf returns the name that a snapshot has in libvirt. A plain name that does not begin with
// tagPrefix is used as it is. Any other name is replaced by a hash, since libvirt makes files with
// these names, and QEMU takes a number as the ID of a snapshot.
func tagOf(name string) string {
	plain := regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]{0,60}$`)
	if plain.MatchString(name) && !strings.HasPrefix(name, tagPrefix) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return tagPrefix + hex.EncodeToString(sum[:8])
}

// snapshotXML is libvirt's description of a snapshot.
type snapshotXML struct {
	XMLName     xml.Name `xml:"domainsnapshot"`
	Name        string   `xml:"name"`
	Description string   `xml:"description"`
	State       string   `xml:"state,omitempty"` // running, paused, shutoff, disk-snapshot
	Created     int64    `xml:"creationTime,omitempty"`
}

// snapshot returns the snapshot as swdt lists it. If swdt has saved the snapshot, its name and time
// are the ones in the description, where swdt has written them.
func (x snapshotXML) snapshot() vm.Snapshot {
	s := vm.Snapshot{Name: x.Name, Taken: time.Unix(x.Created, 0), Memory: x.State == "running" || x.State == "paused"}
	rest, marked := strings.CutPrefix(x.Description, mark)
	moment, name, found := strings.Cut(rest, " ")
	taken, err := time.Parse(time.RFC3339Nano, moment)
	if marked && found && err == nil && tagOf(name) == x.Name {
		s.Name, s.Taken = name, taken
	}
	return s
}

// Save makes libvirt save the domain inside the domain's disk images.
func (d *Driver) Save(ctx context.Context, m vm.Machine, name string) error {
	_, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, _ record) (struct{}, error) {
		if name == "" || len(name) > maxName || !utf8.ValidString(name) {
			return struct{}{}, fmt.Errorf("its name has %d bytes; choose one with 1 to %d", len(name), maxName)
		}
		if _, err := c.saved(domain, name); err == nil {
			return struct{}{}, vm.ErrSnapshotExists
		} else if !errors.Is(err, vm.ErrNoSnapshot) {
			return struct{}{}, err
		}
		text, err := xml.Marshal(snapshotXML{Name: tagOf(name),
			Description: mark + time.Now().UTC().Format(time.RFC3339Nano) + " " + name})
		if err != nil {
			return struct{}{}, err
		}
		_, err = c.DomainSnapshotCreateXML(domain, string(text), 0)
		return struct{}{}, refused(err)
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; libvirt may still finish it: `swdt vm snapshot list` shows whether it has", err)
	}
	if err != nil {
		return fmt.Errorf("save snapshot %q: %w", name, err)
	}
	return nil
}

// refused adds an explanation to the error with which libvirt refuses to save or restore a domain.
// It returns other errors as they are.
func refused(err error) error {
	if hasCode(err, libvirt.ErrOperationUnsupported, libvirt.ErrConfigUnsupported, libvirt.ErrNoSupport,
		libvirt.ErrArgumentUnsupported) {
		return fmt.Errorf("%w: libvirt refuses it: %w; libvirt saves domains whose disks are all qcow2 and, "+
			"before libvirt 10.10, whose firmware is BIOS; driver qemu has no such limits", vm.Unsupported(Name, "snapshots"),
			err)
	}
	return err
}

// saved returns the snapshot with this name, or ErrNoSnapshot.
func (c *client) saved(domain libvirt.Domain, name string) (libvirt.DomainSnapshot, error) {
	snapshot, err := c.DomainSnapshotLookupByName(domain, tagOf(name), 0)
	if hasCode(err, libvirt.ErrNoDomainSnapshot) {
		return snapshot, vm.ErrNoSnapshot
	}
	return snapshot, err
}

// read returns libvirt's description of a snapshot.
func (c *client) read(snapshot libvirt.DomainSnapshot) (x snapshotXML, err error) {
	text, err := c.DomainSnapshotGetXMLDesc(snapshot, 0)
	if err == nil && len(text) > maxDescription {
		err = fmt.Errorf("its description has more than %d bytes", maxDescription)
	}
	if err == nil {
		err = xml.Unmarshal([]byte(text), &x)
	}
	if err != nil {
		return x, fmt.Errorf("read snapshot %q: %w", snapshot.Name, err)
	}
	return x, nil
}

// Restore makes libvirt return the domain to the state of a snapshot.
func (d *Driver) Restore(ctx context.Context, m vm.Machine, name string) error {
	now, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, kept record) (record, error) {
		snapshot, err := c.saved(domain, name)
		if err != nil {
			return kept, err
		}
		described, err := c.read(snapshot)
		if err != nil {
			return kept, err
		}
		var flags libvirt.DomainSnapshotRevertFlags
		if described.snapshot().Memory {
			flags = libvirt.DomainSnapshotRevertRunning
		}
		err = c.DomainRevertToSnapshot(snapshot, uint32(flags))
		if hasCode(err, libvirt.ErrSnapshotRevertRisky) { // the domain has changed since the save: replace its process
			err = c.DomainRevertToSnapshot(snapshot, uint32(flags|libvirt.DomainSnapshotRevertForce))
		}
		if err != nil {
			return kept, refused(err)
		}
		restored, err := c.domain(m)
		if err != nil {
			return kept, err
		}
		return kept.begun(restored.ID), nil
	})
	if err == nil {
		err = writeRecord(m, now)
	}
	if errors.Is(err, vm.ErrAbsent) {
		err = fmt.Errorf("%w: %w", vm.ErrNoSnapshot, err)
	}
	if err != nil {
		return fmt.Errorf("restore snapshot %q: %w", name, err)
	}
	return nil
}

// Snapshots lists the snapshots, the oldest first, including those that swdt has not saved.
func (d *Driver) Snapshots(ctx context.Context, m vm.Machine) ([]vm.Snapshot, error) {
	all, err := of(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, _ record) ([]vm.Snapshot, error) {
		snapshots, _, err := c.DomainListAllSnapshots(domain, 1, 0)
		if err != nil {
			return nil, err
		}
		if len(snapshots) > maxSnapshots {
			return nil, fmt.Errorf("it has more than %d", maxSnapshots)
		}
		var all []vm.Snapshot
		for _, snapshot := range snapshots {
			described, err := c.read(snapshot)
			if err != nil {
				return nil, err
			}
			all = append(all, described.snapshot())
		}
		return all, nil
	})
	if errors.Is(err, vm.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	slices.SortFunc(all, func(a, b vm.Snapshot) int {
		return cmp.Or(a.Taken.Compare(b.Taken), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// RemoveSnapshot makes libvirt remove a snapshot. Later snapshots stay.
func (d *Driver) RemoveSnapshot(ctx context.Context, m vm.Machine, name string) error {
	_, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, _ record) (struct{}, error) {
		snapshot, err := c.saved(domain, name)
		if err == nil {
			err = c.DomainSnapshotDelete(snapshot, 0)
		}
		return struct{}{}, err
	})
	if errors.Is(err, vm.ErrAbsent) {
		err = fmt.Errorf("%w: %w", vm.ErrNoSnapshot, err)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", name, err)
	}
	return nil
}
