//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"

	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// dhcpTimeout bounds one try to get an address.
	dhcpTimeout = 5 * time.Second
	// networkPoll is the time between two checks for a network card, and between two tries to get
	// an address.
	networkPoll = 200 * time.Millisecond
)

// bringUpNetwork gives the first network card its address. Like Windows, the guest does not stop
// asking for an address until it gets one.
func bringUpNetwork(ctx context.Context, s settings, c *console) {
	if lo, err := netlink.LinkByName("lo"); err == nil {
		if err := netlink.LinkSetUp(lo); err != nil {
			c.print("bring up lo: %v", err)
		}
	}
	err := wait.Condition{
		Name:     "an address",
		Interval: networkPoll,
		Look: func(ctx context.Context) error {
			link, err := firstCard()
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return fmt.Errorf("bring up %s: %w", link.Attrs().Name, err)
			}
			a, err := s.address(ctx, link.Attrs().Name)
			if err != nil {
				return err
			}
			if err := a.assign(link); err != nil {
				return err
			}
			c.print("address %s of %s %s", a.network, link.Attrs().Name, link.Attrs().HardwareAddr)
			return nil
		},
	}.Wait(ctx)
	if err != nil {
		c.print("%v", err)
	}
}

// firstCard returns the network card with the lowest number.
func firstCard() (netlink.Link, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the network cards: %w", err)
	}
	links = slices.DeleteFunc(links, func(l netlink.Link) bool {
		return l.Attrs().Flags&net.FlagLoopback != 0 || len(l.Attrs().HardwareAddr) == 0
	})
	if len(links) == 0 {
		return nil, errors.New("there is no network card")
	}
	return slices.MinFunc(links, func(a, b netlink.Link) int { return a.Attrs().Index - b.Attrs().Index }), nil
}

// address is the configuration of a network card.
type address struct {
	network *net.IPNet
	gateway net.IP // nil: none
}

// address returns the address of the settings or, if they have none, an address that a DHCP server
// assigns.
func (s settings) address(ctx context.Context, card string) (address, error) {
	if s.Address == "" {
		return askForAddress(ctx, card)
	}
	ip, network, err := net.ParseCIDR(s.Address)
	if err != nil {
		return address{}, wait.Stop(fmt.Errorf("%s: address: %w", settingsFile, err))
	}
	return address{&net.IPNet{IP: ip, Mask: network.Mask}, net.ParseIP(s.Gateway)}, nil
}

func askForAddress(ctx context.Context, card string) (address, error) {
	client, err := nclient4.New(card, nclient4.WithTimeout(dhcpTimeout), nclient4.WithRetry(1))
	if err != nil {
		return address{}, fmt.Errorf("ask for an address: %w", err)
	}
	defer client.Close()
	lease, err := client.Request(ctx, dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter))
	if err != nil {
		return address{}, fmt.Errorf("ask for an address: %w", err)
	}
	a := address{network: &net.IPNet{IP: lease.ACK.YourIPAddr, Mask: lease.ACK.SubnetMask()}}
	if routers := lease.ACK.Router(); len(routers) > 0 {
		a.gateway = routers[0]
	}
	return a, nil
}

// assign gives a card the address and, if there is a gateway, the default route.
func (a address) assign(link netlink.Link) error {
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: a.network}); err != nil {
		return fmt.Errorf("assign %s: %w", a.network, err)
	}
	if a.gateway == nil {
		return nil
	}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: a.gateway}); err != nil {
		return fmt.Errorf("route to %s: %w", a.gateway, err)
	}
	return nil
}
