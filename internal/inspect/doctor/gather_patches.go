package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/join/switches"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Limits of what is read of one node. A node has about 700 services and drivers, and some thousands of packages.
const (
	maxRegistrations = 4096
	maxOverrides     = 1024
	maxPackages      = 256 // packages of updates, of all packages
	maxFiles         = 256
	maxText          = 1024 // bytes of a value
	// callsAtOnce is the number of calls that are on their way at the same time.
	callsAtOnce = 16
)

// tooMany reports a number that no node has.
func tooMany(what string, n, most int) error {
	return fmt.Errorf("the node has %d %s, and swdt reads %d", n, what, most)
}

// eachAtOnce calls get for each index below n, several at a time.
func eachAtOnce(ctx context.Context, n int, get func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callsAtOnce)
	for i := range n {
		group.Go(func() error { return get(ctx, i) })
	}
	return group.Wait()
}

// values returns the values of a key and the names of its subkeys; none if there is no such key.
func (g *gatherer) values(ctx context.Context, key string) ([]*agentv1.RegistryValue, []string, error) {
	reply, err := g.Node.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key})
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", key, err)
	}
	return reply.GetValues(), reply.GetKeys(), nil
}

// switches gathers the values of the keys of package switches, and with Everything those below switches.Local.
func (g *gatherer) switches(ctx context.Context) error {
	clean, err := newCleaner()
	if err != nil {
		return err
	}
	all := []Switch{}
	for _, key := range switches.Keys() {
		values, _, err := g.values(ctx, key)
		if len(values) > maxOverrides {
			err = tooMany("values in "+key, len(values), maxOverrides)
		}
		if err != nil {
			g.facts.Switches = factOf(all, err)
			return err
		}
		for _, v := range values {
			if !isRegistration(v.GetName()) {
				all = append(all, Switch{Key: key, Name: clean.text(v.GetName()), Type: clean.text(v.GetType()),
					Value: clean.value(v)})
			}
		}
	}
	if g.Everything {
		local, err := g.localOverrides(ctx)
		if all = append(all, local...); err != nil {
			g.facts.Switches = factOf(all, err)
			return err
		}
	}
	g.facts.Switches = Known(all)
	return nil
}

// localOverrides returns the values EnabledState below switches.Local.
func (g *gatherer) localOverrides(ctx context.Context) ([]Switch, error) {
	_, priorities, err := g.values(ctx, switches.Local)
	if err != nil {
		return nil, err
	}
	var found []Switch
	for _, priority := range priorities[:min(len(priorities), callsAtOnce)] {
		_, ids, err := g.values(ctx, switches.Local+`\`+priority)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			found = append(found, Switch{Key: switches.Local + `\` + priority + `\` + id, Name: enabledState})
		}
	}
	if len(found) > maxOverrides {
		return nil, tooMany("overrides of features", len(found), maxOverrides)
	}
	err = eachAtOnce(ctx, len(found), func(ctx context.Context, i int) error {
		value, err := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: found[i].Key, Name: enabledState})
		if err == nil {
			found[i].Type, found[i].Value = string(platform.RegistryDWord), strconv.FormatUint(value.GetInteger(), 10)
		}
		return ignoreMissing(err)
	})
	return slices.DeleteFunc(found, func(s Switch) bool { return s.Value == "" }), err
}

const enabledState = "EnabledState"

func ignoreMissing(err error) error {
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return err
}

// packagesKey has a subkey for each package of Windows' servicing.
const packagesKey = `HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\Packages`

// packages gathers the packages of updates. Windows lists all of them in one key.
func (g *gatherer) packages(ctx context.Context) error {
	_, names, err := g.values(ctx, packagesKey)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(folded(name), "package_for_") })
	if err == nil && len(names) > maxPackages {
		err = tooMany("packages of updates", len(names), maxPackages)
	}
	if err != nil {
		g.facts.Packages = factOf([]UpdatePackage{}, err)
		return err
	}
	all := make([]UpdatePackage, len(names))
	err = eachAtOnce(ctx, len(names), func(ctx context.Context, i int) error {
		all[i].Name, all[i].Version = packageParts(names[i])
		state, err := g.Node.Registry.Get(ctx, &agentv1.RegistryGetRequest{Key: packagesKey + `\` + names[i], Name: "CurrentState"})
		all[i].State = state.GetInteger()
		return ignoreMissing(err)
	})
	slices.SortFunc(all, func(a, b UpdatePackage) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	g.facts.Packages = factOf(all, err)
	return err
}

// packageParts splits name~publisher~architecture~language~version.
func packageParts(full string) (name, version string) {
	parts := strings.Split(full, "~")
	if len(parts) < 2 {
		return Bounded(full), ""
	}
	return Bounded(parts[0]), Bounded(parts[len(parts)-1])
}

// The kinds of a service, from the value Type of its key (winnt.h).
const (
	kernelDriver     = 0x1
	fileSystemDriver = 0x2
	// userInstance marks the instance of a service for one logged-in user, whose name ends in the number of the login.
	userInstance = 0x80
)

// registrations gathers the registrations of all services and drivers from the registry. The SCM would need one call for each
// of them too, and lists no drivers.
func (g *gatherer) registrations(ctx context.Context) error {
	clean, err := newCleaner()
	if err != nil {
		return err
	}
	_, names, err := g.values(ctx, strings.TrimSuffix(servicesKey, `\`))
	if err == nil && len(names) > maxRegistrations {
		err = tooMany("services and drivers", len(names), maxRegistrations)
	}
	if err != nil {
		g.facts.Registrations = factOf([]Registration{}, err)
		return err
	}
	all := make([]Registration, len(names))
	err = eachAtOnce(ctx, len(names), func(ctx context.Context, i int) error {
		values, _, err := g.values(ctx, servicesKey+names[i])
		if errors.Is(err, fault.ErrPermission) {
			// the keys of few services of Windows are for SYSTEM alone
			all[i] = Registration{Name: clean.text(names[i]), Problem: clean.text(err.Error())}
			return nil
		}
		all[i] = clean.registration(names[i], values)
		return err
	})
	all = slices.DeleteFunc(all, func(r Registration) bool { return r.Start == "" && r.Problem == "" })
	slices.SortFunc(all, func(a, b Registration) int { return cmp.Compare(folded(a.Name), folded(b.Name)) })
	g.facts.Registrations = factOf(all, err)
	return err
}

// isRegistration reports whether a value belongs to the registration of a service or driver.
func isRegistration(name string) bool {
	return slices.Contains([]string{"type", "start", "imagepath", "objectname", "displayname", "description", "errorcontrol",
		"group", "tag", "dependonservice", "dependongroup", "owners", "delayedautostart", "failureactions", "bootflags",
		"supportedfeatures"}, folded(name))
}

// registration returns the registration of a service; the zero value for keys that register nothing that starts, and for
// the instances of services for logged-in users.
func (c *cleaner) registration(name string, values []*agentv1.RegistryValue) Registration {
	r := Registration{Name: c.text(name)}
	kind, start, delayed := uint64(0), ^uint64(0), false
	for _, v := range values {
		switch folded(v.GetName()) {
		case "type":
			kind = v.GetInteger()
		case "start":
			start = v.GetInteger()
		case "delayedautostart":
			delayed = v.GetInteger() != 0
		case "imagepath":
			r.Image = c.value(v)
		case "objectname":
			r.Account = c.value(v)
		}
	}
	if kind&userInstance != 0 {
		return Registration{}
	}
	r.Driver = kind&(kernelDriver|fileSystemDriver) != 0
	words := []string{"boot", "system", "auto", "manual", "disabled"}
	if start < uint64(len(words)) {
		r.Start = words[start]
	}
	if delayed && r.Start == "auto" {
		r.Start = "delayed"
	}
	return r
}

// driversThatMatter returns the files of the drivers on which the network and the file system of containers depend.
func driversThatMatter() []string {
	return []string{"afunix.sys", "bindflt.sys", "cimfs.sys", "tcpip.sys", "vfpext.sys", "vmswitch.sys", "wcifs.sys", "winnat.sys"}
}

const driversFolder = `C:\Windows\System32\drivers\`

func (g *gatherer) drivers(ctx context.Context) error {
	var paths []string
	for _, name := range driversThatMatter() {
		paths = append(paths, driversFolder+name)
	}
	files, err := g.hashes(ctx, paths)
	g.facts.Drivers = factOf(files, err)
	return err
}

// hashes returns the hashes of files. A file that does not exist has no hash. The node keeps the hashes of unchanged files.
func (g *gatherer) hashes(ctx context.Context, paths []string) ([]HashedFile, error) {
	if len(paths) > maxFiles {
		return nil, tooMany("files", len(paths), maxFiles)
	}
	all := make([]HashedFile, len(paths))
	err := eachAtOnce(ctx, len(paths), func(ctx context.Context, i int) error {
		reply, err := g.Node.Files.Hash(ctx, &agentv1.HashRequest{Path: paths[i]})
		all[i] = HashedFile{Path: Bounded(paths[i]), SHA256: reply.GetSha256(), Bytes: reply.GetSize()}
		if err = ignoreMissing(err); err != nil {
			return fmt.Errorf("hash %s: %w", paths[i], err)
		}
		return nil
	})
	return all, err
}

// features gathers the states of the optional features that nodes use.
func (g *gatherer) features(ctx context.Context) error {
	states, err := g.look.Features(ctx, "Containers", "Microsoft-Hyper-V", "Microsoft-Hyper-V-Management-PowerShell",
		"VirtualMachinePlatform", "Windows-Defender")
	g.facts.Features = factOf(states, err)
	return err
}

// binaries gathers the programs beside containerd and those of the pod network, by their hashes.
func (g *gatherer) binaries(ctx context.Context) error {
	var paths []string
	if program := programOf(g.facts.service("containerd"), "containerd.exe"); program != "" {
		beside, err := g.listed(ctx, folderOf(program))
		if err != nil {
			g.facts.Binaries = factOf([]HashedFile{}, err)
			return err
		}
		paths = append(paths, beside...)
	}
	if g.facts.CNI.Value == nil {
		g.facts.Binaries = Fact[[]HashedFile]{Unknown: "the programs of the pod network are unknown: " + g.facts.CNI.why()}
		return nil
	}
	for _, folder := range g.facts.CNI.Value.Folders {
		plugins, err := g.listed(ctx, folder)
		if err != nil {
			g.facts.Binaries = factOf([]HashedFile{}, err)
			return err
		}
		paths = append(paths, plugins...)
	}
	for _, name := range []string{"kubelet", "kube-proxy"} {
		if program := programOf(g.facts.service(name), name+".exe"); program != "" {
			paths = append(paths, program)
		}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool { return !strings.HasSuffix(folded(path), ".exe") })
	files, err := g.hashes(ctx, paths)
	g.facts.Binaries = factOf(files, err)
	return err
}

// cleaner makes texts of a node fit to be kept: bounded and without secrets.
type cleaner struct{ redactor *redact.Redactor }

func newCleaner() (*cleaner, error) {
	redactor, err := redact.New(nil)
	return &cleaner{redactor}, err
}

func (c *cleaner) text(text string) string { return Bounded(c.redactor.String(text)) }

// named returns the value of a setting.
func (c *cleaner) named(name, value string) string {
	return Bounded(string(c.redactor.Named(name, []byte(value))))
}

// value returns a value of the registry as text.
func (c *cleaner) value(v *agentv1.RegistryValue) string {
	switch platform.RegistryType(v.GetType()) {
	case platform.RegistryDWord, platform.RegistryQWord:
		return strconv.FormatUint(v.GetInteger(), 10)
	case platform.RegistryString, platform.RegistryExpandString:
		return c.named(v.GetName(), v.GetString_())
	case platform.RegistryMultiString:
		return c.named(v.GetName(), strings.Join(v.GetStrings(), "\n"))
	}
	return Bounded(fmt.Sprintf("%x", v.GetBinary()[:min(len(v.GetBinary()), maxText)]))
}

// Bounded returns the beginning of a text that is longer than any value of a node should be.
func Bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}
