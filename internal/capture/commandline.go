package capture

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/pktmon"
)

const (
	// maxFilters is pktmon's limit.
	maxFilters = 32
	megabyte   = 1 << 20
	// MaxText is how much text a live capture may print on the node, bytes.
	MaxText = 512 << 20
)

// TooManyFiltersError: what is asked for needs more filters than there can be.
type TooManyFiltersError struct{ Needed int }

func (e *TooManyFiltersError) Error() string {
	return fmt.Sprintf("this needs %d filters, one for each address, port and protocol together, and pktmon has %d: ask for less, or for whole networks (10.244.1.0/24)",
		e.Needed, maxFilters)
}

// filters are the arguments of each `pktmon filter add`: a packet is captured
// where all conditions of one filter hold, so that there is one for each of the
// addresses with each of the protocols and each of the ports.
func (o Options) filters(d Dialect) ([][]string, error) {
	var addresses []string
	for _, address := range o.Addresses {
		addresses = append(addresses, addressText(address))
	}
	all := cross(values("-m", o.MACs), values("-i", addresses), values("-t", o.Protocols), values("-p", decimals(o.Ports)))
	if len(all) > maxFilters {
		return nil, &TooManyFiltersError{Needed: len(all)}
	}
	if d.Capture && len(o.Addresses) > 0 {
		// Also in packets that an overlay network has wrapped into others.
		for i := range all {
			all[i] = append(all[i], "-e")
		}
	}
	return all, nil
}

func addressText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.Masked().String()
}

func decimals(ports []uint16) (all []string) {
	for _, port := range ports {
		all = append(all, strconv.Itoa(int(port)))
	}
	return all
}

func values(flag string, each []string) (all [][]string) {
	for _, value := range each {
		all = append(all, []string{flag, value})
	}
	return all
}

// cross joins one of each; what nothing was said about is no condition.
func cross(lists ...[][]string) [][]string {
	all := [][]string{}
	for _, list := range lists {
		switch {
		case len(list) == 0:
			continue
		case len(all) == 0:
			all = append(all, list...)
			continue
		}
		var next [][]string
		for _, before := range all {
			for _, one := range list {
				next = append(next, append(append([]string{}, before...), one...))
			}
		}
		all = next
	}
	return all
}

// plan is what the node is asked for.
func (o Options) plan(d Dialect, id string) (pktmon.Plan, error) {
	filters, err := o.filters(d)
	if err != nil {
		return pktmon.Plan{}, err
	}
	plan := pktmon.Plan{
		ID: id, Holder: o.Holder, Filters: filters, Live: o.Live, Blind: !d.Status,
		For: o.For, Force: o.Force, MaxText: MaxText, Round: o.Round,
	}
	if o.Round > 0 && d.ToPcap == "" {
		return pktmon.Plan{}, fmt.Errorf("this Windows' pktmon makes no pcapng, Windows Server 2022 (build 20348) does: use -w FILE for its own log: %w", host.ErrNotSupported)
	}
	plan.Start, err = o.start(d, pktmon.LogFile(id))
	return plan, err
}

// start are the arguments that begin the capture.
func (o Options) start(d Dialect, log string) ([]string, error) {
	size := strconv.FormatInt(max(1, o.MaxSize/megabyte), 10)
	if !d.Capture {
		if o.Live || o.Drops || o.Components != "" {
			return nil, fmt.Errorf("this Windows' pktmon cannot show packets as they come, nor choose drops or components; Windows Server 2022 (build 20348) can: "+
				"capture to a file with -w, and without --drops and --components: %w", host.ErrNotSupported)
		}
		return []string{"start", "--etw", "-p", "0", "-f", log, "-s", size}, nil
	}
	args := []string{"start", "--capture"}
	if o.Components != "" {
		args = append(args, "--comp", o.Components)
	}
	if o.Drops {
		args = append(args, "--type", "drop")
	}
	args = append(args, "--pkt-size", "0")
	if !o.Live {
		return append(args, "--file-name", log, "--file-size", size, "--log-mode", "circular"), nil
	}
	if !d.RealTime {
		return nil, fmt.Errorf("this Windows' pktmon cannot show packets as they come: capture to a file with -w: %w", host.ErrNotSupported)
	}
	return append(args, "--log-mode", "real-time"), nil
}

// ParseMAC gives an address as Windows writes it.
func ParseMAC(text string) (string, error) {
	digits := strings.ToUpper(strings.NewReplacer(":", "", "-", "", ".", "").Replace(text))
	if _, err := strconv.ParseUint(digits, 16, 64); err != nil || len(digits) != 12 {
		return "", fmt.Errorf("%q is not a MAC address: write 00-15-5D-01-02-03", text)
	}
	var parts []string
	for i := 0; i < len(digits); i += 2 {
		parts = append(parts, digits[i:i+2])
	}
	return strings.Join(parts, "-"), nil
}

// ParseProtocol gives a protocol as pktmon writes it.
func ParseProtocol(text string) (string, error) {
	for _, known := range []string{"TCP", "UDP", "ICMP", "ICMPv6"} {
		if strings.EqualFold(text, known) {
			return known, nil
		}
	}
	if number, err := strconv.ParseUint(text, 10, 8); err == nil {
		return strconv.FormatUint(number, 10), nil
	}
	return "", fmt.Errorf("%q is not a protocol: use tcp, udp, icmp, icmpv6 or a number to 255", text)
}

// ParseAddress reads an address or a network.
func ParseAddress(text string) (netip.Prefix, error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is neither an IP address nor a network such as 10.244.1.0/24", text)
	}
	return netip.PrefixFrom(address, address.BitLen()), nil
}

// ParseComponents checks what pktmon's --comp takes.
func ParseComponents(text string) error {
	if text == "" || text == "all" || text == "nics" {
		return nil
	}
	for number := range strings.SplitSeq(text, ",") {
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			return errors.New("use all, nics, or numbers of components, as `swdt exec -- pktmon list` shows them")
		}
	}
	return nil
}
