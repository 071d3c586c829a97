package network

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Tap is a tap device, which leads the frames of one VM to a bridge.
type Tap struct {
	Name   string
	Bridge string
	Owner  int // the ID of the user who may open the tap without root's rights
}

// Missing returns the steps that Make would take, one line for each; none if the tap is as wanted.
func (t Tap) Missing() ([]string, error) {
	if err := errors.Join(validInterface(t.Name), validInterface(t.Bridge)); err != nil {
		return nil, err
	}
	bridge, err := findBridge(t.Bridge)
	if err != nil {
		return nil, err
	}
	link, err := netlink.LinkByName(t.Name)
	if isNoLink(err) {
		return []string{fmt.Sprintf("make the tap device %s for user %d, on bridge %s", t.Name, t.Owner, t.Bridge)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up interface %s: %w", t.Name, err)
	}
	if err := t.isOurs(link); err != nil {
		return nil, err
	}
	var missing []string
	if link.Attrs().MasterIndex != bridge.Attrs().Index {
		missing = append(missing, fmt.Sprintf("put %s on bridge %s", t.Name, t.Bridge))
	}
	if link.Attrs().RawFlags&up == 0 {
		missing = append(missing, "start "+t.Name)
	}
	return missing, nil
}

// up is the flag of an interface that was started, IFF_UP.
const up = 1

// Make makes the tap, puts it on the bridge and starts it. It needs root's rights. If it fails, it
// removes a tap that it has made.
func (t Tap) Make() (err error) {
	missing, err := t.Missing()
	if err != nil || len(missing) == 0 {
		return err
	}
	link, err := netlink.LinkByName(t.Name)
	if isNoLink(err) {
		link = &netlink.Tuntap{
			LinkAttrs: netlink.LinkAttrs{Name: t.Name}, Mode: netlink.TUNTAP_MODE_TAP,
			Flags: netlink.TUNTAP_DEFAULTS | netlink.TUNTAP_VNET_HDR, Owner: uint32(t.Owner),
		}
		if err := netlink.LinkAdd(link); err != nil {
			return fmt.Errorf("make tap device %s: %w", t.Name, err)
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, netlink.LinkDel(link))
			}
		}()
	} else if err != nil {
		return fmt.Errorf("look up interface %s: %w", t.Name, err)
	}
	bridge, err := findBridge(t.Bridge)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("put %s on bridge %s: %w", t.Name, t.Bridge, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("start %s: %w", t.Name, err)
	}
	return nil
}

// Exists reports whether the tap exists. It returns an error if the interface with the tap's name
// is not this tap.
func (t Tap) Exists() (bool, error) {
	link, err := netlink.LinkByName(t.Name)
	if isNoLink(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up interface %s: %w", t.Name, err)
	}
	return true, t.isOurs(link)
}

// Remove deletes the tap. If the tap does not exist, Remove returns nil. The tap's owner can call
// Remove without root's rights. The error is a *BusyError if a VM uses the tap.
func (t Tap) Remove() error {
	link, err := netlink.LinkByName(t.Name)
	if isNoLink(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up interface %s: %w", t.Name, err)
	}
	if err := t.isOurs(link); err != nil {
		return err
	}
	if err := dissolve(t.Name); err != nil {
		return fmt.Errorf("remove tap device %s: %w", t.Name, err)
	}
	return nil
}

// dissolve removes a tap that no program uses. It opens the tap and makes the tap temporary, so
// that the kernel removes the tap as soon as dissolve closes it.
func dissolve(name string) error {
	device, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	err = unix.IoctlIfreq(int(device.Fd()), unix.TUNSETIFF, request)
	if errors.Is(err, unix.EBUSY) {
		return &BusyError{name}
	}
	if err != nil {
		return err
	}
	return unix.IoctlSetInt(int(device.Fd()), unix.TUNSETPERSIST, 0)
}

// isOurs returns an error if the interface with the tap's name is no tap, or is the tap of another
// user.
func (t Tap) isOurs(link netlink.Link) error {
	tap, ok := link.(*netlink.Tuntap)
	switch {
	case !ok || tap.Mode != netlink.TUNTAP_MODE_TAP:
		return fmt.Errorf("interface %s exists and is a %s, not a tap device: choose another name in "+
			"spec.machine.network.tap", t.Name, link.Type())
	case t.Owner != 0 && int(tap.Owner) != t.Owner:
		return fmt.Errorf("tap device %s belongs to user %d, not %d: choose another name in "+
			"spec.machine.network.tap", t.Name, tap.Owner, t.Owner)
	}
	return nil
}

func findBridge(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if isNoLink(err) {
		return nil, fmt.Errorf("%w %s: name one that exists, or a Docker network, in spec.machine.network.bridge",
			errNoBridge, name)
	}
	if err != nil {
		return nil, fmt.Errorf("look up bridge %s: %w", name, err)
	}
	if link.Type() != "bridge" {
		return nil, fmt.Errorf("%w: interface %s is a %s", errNoBridge, name, link.Type())
	}
	return link, nil
}

func isNoLink(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound)
}
