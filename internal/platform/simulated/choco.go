package simulated

import (
	"context"
	"fmt"
	"strings"
)

const (
	chocoVersion = "2.3.0"
	chocoFolder  = `C:\ProgramData\chocolatey`
	chocoExe     = chocoFolder + `\bin\choco.exe`
	chocoHost    = "community.chocolatey.org"
)

// chocoState is Chocolatey's state: installed packages, and the packages in the
// feed.
type chocoState struct {
	installed map[string]string // versions of the packages, by lower-case name
	feed      map[string]string
}

func newChocoState() *chocoState {
	return &chocoState{
		installed: map[string]string{},
		feed: map[string]string{
			"7zip": "24.8.0", "curl": "8.10.1", "git": "2.47.0", "golang": "1.26.0", "grep": "3.11.0",
			"jq": "1.7.1", "make": "4.4.1", "nano": "8.2.0", "notepadplusplus": "8.7.1", "nssm": "2.24.101",
			"python": "3.13.0", "sysinternals": "2024.7.23", "vim": "9.1.821", "wget": "1.21.4",
		},
	}
}

// OfferPackage adds a package to Chocolatey's feed.
func (m *Machine) OfferPackage(name, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.choco.feed[fold(name)] = version
}

// Packages returns the versions of the packages that Chocolatey has installed, by name.
func (m *Machine) Packages() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for name, version := range m.choco.installed {
		all[name] = version
	}
	return all
}

// SetInternet connects the machine to the internet, or disconnects it.
func (m *Machine) SetInternet(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Internet = on
}

// installChoco performs Chocolatey's installation; the caller holds the lock.
func (m *Machine) installChoco() {
	m.putFile(chocoExe, Binary(BinarySpec{Name: "choco", Version: chocoVersion}))
	m.choco.installed["chocolatey"] = chocoVersion
}

// chocoMain imitates choco.exe 2.x. Its texts are those of chocolatey/choco
// (src/chocolatey/infrastructure.app/services/NugetService.cs and ChocolateyPackageService.cs), shortened; `list
// --limit-output` prints NAME|VERSION. swdt reads that and the exit code alone.
func chocoMain(_ context.Context, p *Process) int {
	m := p.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	flags := map[string]string{}
	for i := 0; i < len(p.Args); i++ {
		arg := p.Args[i]
		if !strings.HasPrefix(arg, "-") {
			names = append(names, arg)
			continue
		}
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !ok && strings.EqualFold(name, "version") && len(names) > 0 && i+1 < len(p.Args) {
			i++
			value = p.Args[i]
		}
		flags[fold(name)] = value
	}
	c := chocoCall{p: p, m: m, flags: flags}
	if len(names) == 0 {
		fmt.Fprintf(p.Stdout, "%s\r\n", chocoVersion)
		return 0
	}
	switch fold(names[0]) {
	case "list":
		return c.list(names[1:])
	case "install", "upgrade":
		return c.each(names[1:], c.install)
	case "uninstall":
		return c.each(names[1:], c.uninstall)
	}
	fmt.Fprintf(p.Stdout, "Could not find a command registered that meets '%s'.\r\n", names[0])
	return 1
}

type chocoCall struct {
	p     *Process
	m     *Machine
	flags map[string]string
}

func (c chocoCall) has(names ...string) bool {
	for _, name := range names {
		if _, ok := c.flags[name]; ok {
			return true
		}
	}
	return false
}

func (c chocoCall) list(names []string) int {
	limit := c.has("limit-output", "limitoutput", "r")
	if !limit {
		fmt.Fprintf(c.p.Stdout, "Chocolatey v%s\r\n", chocoVersion)
	}
	n := 0
	for _, name := range sortedKeys(c.m.choco.installed) {
		if len(names) > 0 && !strings.Contains(name, fold(names[0])) {
			continue
		}
		separator := " "
		if limit {
			separator = "|"
		}
		fmt.Fprintf(c.p.Stdout, "%s%s%s\r\n", name, separator, c.m.choco.installed[name])
		n++
	}
	if !limit {
		fmt.Fprintf(c.p.Stdout, "%d packages installed.\r\n", n)
	}
	return 0
}

func (c chocoCall) each(names []string, do func(string) int) int {
	if len(names) == 0 {
		fmt.Fprint(c.p.Stdout, "Package name is required. Please pass at least one package name.\r\n")
		return 1
	}
	for _, name := range names {
		if code := do(name); code != 0 {
			return code
		}
	}
	return 0
}

func (c chocoCall) install(name string) int {
	if !c.has("y", "yes", "confirm") {
		fmt.Fprint(c.p.Stdout, "Do you want to run the script?([Y]es/[A]ll/[N]o/[P]rint): Timeout or your choice of "+
			"'' is not a valid selection.\r\n")
		return 1
	}
	offered, known := c.m.choco.feed[fold(name)]
	installed := c.m.choco.installed[fold(name)]
	wanted := c.flags["version"]
	if wanted == "" {
		wanted = offered
	}
	switch {
	case installed != "" && (installed == wanted || !c.has("version")) && !c.has("force"):
		fmt.Fprintf(c.p.Stdout, " - %s v%s already installed.\r\n", name, installed)
		return 0
	case !c.m.options.Internet:
		fmt.Fprintf(c.p.Stdout, "Unable to load the service index for source https://%s/api/v2/.\r\n  The remote name "+
			"could not be resolved: '%s'\r\n", chocoHost, chocoHost)
		return 1
	case !known:
		fmt.Fprintf(c.p.Stdout, "%s not installed. The package was not found with the source(s) listed.\r\n", name)
		return 1
	case installed != "" && installed > wanted && !c.has("allow-downgrade", "allowdowngrade"):
		fmt.Fprintf(c.p.Stdout, "A newer version of %s (v%s) is already installed.\r\n Use --allow-downgrade or "+
			"--force to attempt to install older versions.\r\n", name, installed)
		return 1
	}
	c.m.choco.installed[fold(name)] = wanted
	c.m.putFile(chocoFolder+`\lib\`+name+`\`+name+".nuspec", []byte("<package><version>"+wanted+"</version></package>"))
	fmt.Fprintf(c.p.Stdout, "%s v%s [Approved]\r\n The install of %s was successful.\r\n", name, wanted, name)
	return 0
}

func (c chocoCall) uninstall(name string) int {
	if c.m.choco.installed[fold(name)] == "" {
		fmt.Fprintf(c.p.Stdout, "%s is not installed. Cannot uninstall a non-existent package.\r\n", name)
		return 1
	}
	delete(c.m.choco.installed, fold(name))
	fmt.Fprintf(c.p.Stdout, " %s has been successfully uninstalled.\r\n", name)
	return 0
}
