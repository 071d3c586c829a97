package capture

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// maxFilters is the largest number of filters that pktmon accepts.
	maxFilters = 32
	megabyte   = 1 << 20
	// MaxText is the largest size in bytes of a live capture's text on the node.
	MaxText = 512 << 20
)

// TooManyFiltersError reports a capture that needs more filters than pktmon supports.
type TooManyFiltersError struct{ Needed int }

func (e *TooManyFiltersError) Error() string {
	return fmt.Sprintf("the capture needs %d filters, one for each combination of address, port and protocol, and "+
		"pktmon supports %d: name fewer, or whole networks (10.244.1.0/24)",
		e.Needed, maxFilters)
}

// filters returns the arguments of each `pktmon filter add`. A packet is captured if all
// conditions of one filter hold, so there is a filter for each combination of MAC address,
// address, protocol and port.
func (o Options) filters(d Dialect) ([][]string, error) {
	var addresses []string
	for _, address := range o.Addresses {
		addresses = append(addresses, addressText(address))
	}
	all := cross(values("-m", o.MACs), values("-i", addresses), values("-t", o.Protocols),
		values("-p", decimals(o.Ports)))
	if len(all) > maxFilters {
		return nil, &TooManyFiltersError{Needed: len(all)}
	}
	if d.Capture && len(o.Addresses) > 0 {
		// The filter also applies to packets that an overlay network has encapsulated.
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

// cross returns every combination that takes one element from each list and joins these elements.
// It skips empty lists, since an empty list sets no condition.
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

// plan returns the request to the node.
func (o Options) plan(d Dialect, id string) (captureplan.Plan, error) {
	filters, err := o.filters(d)
	if err != nil {
		return captureplan.Plan{}, err
	}
	plan := captureplan.Plan{
		ID: id, Holder: o.Holder, Filters: filters, Live: o.Live, Blind: !d.Status,
		For: o.For, Force: o.Force, MaxText: MaxText, Round: o.Round,
	}
	if o.Round > 0 && d.ToPcap == "" {
		return captureplan.Plan{},
			fmt.Errorf("this Windows' pktmon cannot convert to pcapng, which needs Windows Server 2022 (build "+
				"20348): use -w FILE for its own log: %w", fault.ErrNotSupported)
	}
	plan.Start, err = o.start(d, captureplan.LogFile(id))
	return plan, err
}

// start returns the arguments that start the capture.
func (o Options) start(d Dialect, log string) ([]string, error) {
	size := strconv.FormatInt(max(1, o.MaxSize/megabyte), 10)
	if !d.Capture {
		if o.Live || o.Drops || o.Components != "" {
			return nil, fmt.Errorf("this Windows' pktmon supports neither live output nor drops or components, which "+
				"need Windows Server 2022 (build 20348): "+
				"capture to a file with -w, and without --drops and --components: %w", fault.ErrNotSupported)
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
		return nil, fmt.Errorf("this Windows' pktmon does not support live output: capture to a file with -w: %w",
			fault.ErrNotSupported)
	}
	return append(args, "--log-mode", "real-time"), nil
}

// ParseMAC parses a MAC address and returns it as Windows writes it.
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

// ParseProtocol parses a protocol and returns it as pktmon writes it.
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

// ParseAddress parses an IP address or a network.
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

// ParseComponents returns an error unless text is an argument for pktmon's --comp.
func ParseComponents(text string) error {
	if text == "" || text == "all" || text == "nics" {
		return nil
	}
	for number := range strings.SplitSeq(text, ",") {
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			return errors.New("use all, nics, or numbers of components; `swdt exec -- pktmon list` lists them")
		}
	}
	return nil
}
