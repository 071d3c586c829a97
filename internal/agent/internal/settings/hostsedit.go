package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// HostsPath is the path of a machine's hosts file.
const HostsPath = `C:\Windows\System32\drivers\etc\hosts`

// maxHosts limits how much of a hosts file is read, in bytes.
const maxHosts = 16 << 20

// Hosts returns the entries of the hosts file, in the file's order.
func Hosts(files platform.Files) ([]HostsEntry, error) {
	file, _, err := readHosts(files)
	if err != nil {
		return nil, err
	}
	return file.entries(), nil
}

// SetHosts changes the hosts file: each name resolves to its address and to no other address, and
// each name without an address is removed. SetHosts reports whether the file had to be changed.
func SetHosts(ctx context.Context, files platform.Files, changes []HostsEntry) (changed bool, err error) {
	if err := checkHosts(changes); err != nil {
		return false, err
	}
	file, before, err := readHosts(files)
	if err != nil {
		return false, err
	}
	file.change(changes)
	after := file.bytes()
	if bytes.Equal(before, after) {
		return false, nil
	}
	if err := replace(ctx, files, HostsPath, after); err != nil {
		return false, fmt.Errorf("write the hosts file: %w", err)
	}
	return true, nil
}

func checkHosts(changes []HostsEntry) error {
	asked := map[string]HostsEntry{}
	for _, change := range changes {
		if !isHostname(change.Name) {
			return invalidf("hosts: %q is not a host name", change.Name)
		}
		if change.Address != "" {
			if _, err := netip.ParseAddr(change.Address); err != nil {
				return invalidf("hosts: %q, the address of %s, is not an IP address", change.Address, change.Name)
			}
		}
		key := strings.ToLower(change.Name)
		if other, twice := asked[key]; twice && !sameAddress(other.Address, change.Address) {
			return invalidf("hosts: %s is requested twice, with %q and with %q", change.Name,
				other.Address, change.Address)
		}
		asked[key] = change
	}
	return nil
}

// isHostname reports whether a text can be a host name. It is permissive:
// Windows resolves names with underscores too.
func isHostname(name string) bool {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
	}
	return name != "" && len(name) <= 253 && strings.TrimFunc(name, allowed) == "" &&
		!strings.HasPrefix(name, ".") && !strings.Contains(name, "..")
}

// readHosts reads the hosts file. It treats a missing file as an empty one, as
// Windows does.
func readHosts(files platform.Files) (hostsFile, []byte, error) {
	file, err := files.Open(HostsPath)
	if errors.Is(err, fault.ErrNotExist) {
		return hostsFile{}, nil, nil
	}
	if err != nil {
		return hostsFile{}, nil, fmt.Errorf("read the hosts file: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxHosts+1))
	if err != nil {
		return hostsFile{}, nil, fmt.Errorf("read the hosts file: %w", err)
	}
	if len(data) > maxHosts {
		return hostsFile{}, nil, invalidf("the hosts file has more than %d bytes", maxHosts)
	}
	hosts, err := parseHosts(data)
	return hosts, data, err
}

// replace writes a temporary file next to path and renames it to path, so that no program reads a
// partial file. The access list of the file stays the same.
func replace(ctx context.Context, files platform.Files, path string, data []byte) (err error) {
	temporary := path + ".swdt-new"
	file, err := files.Create(temporary, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = copyAccess(files, path, temporary)
	}
	if err == nil {
		err = patience.Patience{Files: files, Limit: patience.Long}.Rename(ctx, temporary, path, true)
	}
	if err != nil {
		return errors.Join(err, files.Remove(temporary))
	}
	return nil
}

// copyAccess gives the file `to` the access list of the file `from`, unless
// `to` has inherited the same list from its folder. It does not copy the owner,
// since assigning a file to another account requires SeRestorePrivilege.
func copyAccess(files platform.Files, from, to string) error {
	want, err := files.ACL(from)
	if errors.Is(err, fault.ErrNotExist) || errors.Is(err, fault.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	is, err := files.ACL(to)
	if err != nil {
		return err
	}
	if accessList(is) == accessList(want) {
		return nil
	}
	return files.SetACL(to, accessList(want))
}

// accessList removes owner and group from an SDDL text.
func accessList(sddl string) string {
	if i := strings.Index(sddl, "D:"); i >= 0 {
		return sddl[i:]
	}
	return ""
}
