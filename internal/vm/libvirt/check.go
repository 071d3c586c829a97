package libvirt

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
)

// defaultURI is the URI of the libvirt that Check asks if the Machine has no URI.
const defaultURI = "qemu:///system"

// oldestLibvirt is the first version of libvirt with everything that the driver uses: 5.0.0, in the
// number format of libvirt. The feature that was added last is the neighbour table as a source of
// addresses.
const oldestLibvirt = 5_000_000

// Check reports what your machine lacks for a VM. With the zero Machine, it reports only what every
// VM needs.
func (d *Driver) Check(ctx context.Context, m vm.Machine) []finding.Problem {
	if runtime.GOOS == "windows" {
		return []finding.Problem{problem("system", finding.Error, "Windows has no libvirt",
			"write driver: hyperv, or run swdt on Linux", "this is "+runtime.GOOS)}
	}
	if m.URI == "" {
		m.URI = defaultURI
	}
	version, err := ask(ctx, m.URI, answerLimit, func(c *client) (uint64, error) { return c.ConnectGetLibVersion() })
	var unreachable *ConnectError
	switch {
	case errors.As(err, &unreachable):
		return []finding.Problem{problem("libvirt", finding.Error, "libvirt does not answer at "+m.URI,
			unreachable.Remedy, unreachable.Err.Error())}
	case err != nil:
		return []finding.Problem{problem("libvirt", finding.Error, "libvirt does not answer at "+m.URI,
			"`virsh -c "+m.URI+" list` shows whether it works", err.Error())}
	case version < oldestLibvirt:
		return []finding.Problem{problem("libvirt", finding.Error, "libvirt is older than 5.0", "install a newer one",
			fmt.Sprintf("version %d.%d.%d", version/1_000_000, version/1000%1000, version%1000))}
	}
	if m.Domain == "" {
		return nil
	}
	adopted, err := d.Adopt(ctx, m)
	if errors.Is(err, vm.ErrAbsent) {
		return []finding.Problem{problem("domain", finding.Error, "libvirt has no domain "+m.Domain,
			"write its name as `virsh -c "+m.URI+" list --all` lists it", "at "+m.URI)}
	}
	if err != nil {
		return []finding.Problem{problem("domain", finding.Error, "domain "+m.Domain+" cannot be adopted",
			"define it with `virsh define`", err.Error())}
	}
	return checkDomain(adopted)
}

// checkDomain reports what swdt cannot do with a domain.
func checkDomain(m vm.Machine) []finding.Problem {
	if m.Network.Mode == vm.UserMode && m.Network.Address == "" {
		return []finding.Problem{problem("network", finding.Warning,
			"the domain's address cannot be known: its network is in user mode",
			"connect it to a network of libvirt, or set spec.credentials.hostname to a forwarded port", "interface type user")}
	}
	return nil
}

func problem(check string, severity finding.Severity, what, remedy, evidence string) finding.Problem {
	return finding.Problem{Check: check, Where: finding.OnMachine, Finding: finding.Finding{
		Severity: severity, What: what, Remedy: remedy, Evidence: evidence,
	}}
}
