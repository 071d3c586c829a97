package setup

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/script"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	publishedInstaller = "https://community.chocolatey.org/install.ps1"
	defaultChocolatey  = `C:\ProgramData\chocolatey`
	chocolateyStep     = "Chocolatey"

	// noDownload is the exit code of installerScript if it could not download the published
	// script.
	noDownload = 86
)

// chocolateySteps returns the steps that install Chocolatey if it is missing, and then the packages.
func chocolateySteps(n *node.Node, packages []string, installerURL string) []plan.Step {
	if len(packages) == 0 {
		return nil
	}
	choco := &chocolatey{}
	steps := []plan.Step{&installChocolatey{node: n, choco: choco, url: installerURL}}
	for _, wanted := range packages {
		name, version, _ := strings.Cut(wanted, "@")
		steps = append(steps, &chocoPackage{node: n, choco: choco, name: name, version: version})
	}
	return steps
}

// chocolatey is the node's Chocolatey. choco takes seconds to answer, so the steps share one
// chocolatey, which remembers the list of installed packages.
type chocolatey struct {
	installed map[string]string // the installed versions by lower-case package name; nil: choco was not asked yet
}

// executable returns the path of choco.exe; found reports whether it exists.
func (c *chocolatey) executable(ctx context.Context, n *node.Node) (path string, found bool, err error) {
	variables, err := machineEnvironment(ctx, n)
	if err != nil {
		return "", false, err
	}
	folder := defaultChocolatey
	if set := variables["chocolateyinstall"]; set != "" && !strings.Contains(set, "%") {
		folder = strings.TrimRight(set, `\/`)
	}
	path = folder + `\bin\choco.exe`
	_, err = n.Files.Stat(ctx, &agentv1.StatRequest{Path: path})
	if errors.Is(err, fault.ErrNotExist) {
		return path, false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for Chocolatey: %w", err)
	}
	return path, true, nil
}

// packages returns the versions of the installed packages, by lower-case name; none if
// Chocolatey itself is missing.
func (c *chocolatey) packages(ctx context.Context, n *node.Node) (map[string]string, error) {
	if c.installed != nil {
		return c.installed, nil
	}
	path, found, err := c.executable(ctx, n)
	if err != nil {
		return nil, err
	}
	if !found {
		return map[string]string{}, nil
	}
	arguments := []string{"list", "--limit-output"}
	old, err := beforeTwo(ctx, n, path)
	if err != nil {
		return nil, err
	}
	if old {
		// Before 2.0, choco list without --local-only lists every published package. From 2.0
		// on, choco rejects --local-only.
		arguments = append(arguments, "--local-only")
	}
	// Exit code 2 means that nothing is installed (useEnhancedExitCodes).
	output, err := run(ctx, n, path, arguments, 0, 2)
	if err != nil {
		return nil, fmt.Errorf("list the installed packages: %w", err)
	}
	c.installed = parsePackages(output.Stdout)
	return c.installed, nil
}

// forget makes the next call of packages ask choco again.
func (c *chocolatey) forget() { c.installed = nil }

func parsePackages(output string) map[string]string {
	packages := map[string]string{}
	for line := range strings.Lines(output) {
		name, version, ok := strings.Cut(strings.TrimSpace(line), "|")
		if ok && name != "" && !strings.Contains(name, " ") {
			packages[strings.ToLower(name)] = version
		}
	}
	return packages
}

// beforeTwo reports whether choco's version is below 2.0. A version that cannot be parsed
// counts as 2.0 or newer.
func beforeTwo(ctx context.Context, n *node.Node, path string) (bool, error) {
	output, err := run(ctx, n, path, []string{"--version"}, 0)
	if err != nil {
		return false, fmt.Errorf("ask Chocolatey for its version: %w", err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(output.Stdout), "v"), ".")
	number, err := strconv.Atoi(major)
	return err == nil && number < 2, nil
}

// installChocolatey runs Chocolatey's installer script on the node.
type installChocolatey struct {
	node  *node.Node
	choco *chocolatey
	url   string
}

func (s *installChocolatey) Name() string { return chocolateyStep }

func (s *installChocolatey) Plan(ctx context.Context) (plan.Change, error) {
	_, found, err := s.choco.executable(ctx, s.node)
	if err != nil || found {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "install Chocolatey from " + s.url}, nil
}

func (s *installChocolatey) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	defer s.choco.forget()
	clients := script.Clients{Files: s.node.Files, Processes: s.node.Processes}
	output, err := script.RunForOutput(ctx, clients, installerScript(s.url))
	if err != nil {
		return plan.Outcome{}, fmt.Errorf("run Chocolatey's installer: %w", err)
	}
	r.Debug("%s", strings.TrimSpace(output.Stdout))
	if output.ExitCode != 0 {
		return plan.Outcome{}, s.failed(output)
	}
	path, found, err := s.choco.executable(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !found {
		return plan.Outcome{}, fmt.Errorf("the installer %s ended well, but %s is not there; run it on the node by "+
			"hand to see why", s.url, path)
	}
	return plan.Outcome{}, nil
}

func (s *installChocolatey) failed(output script.Output) error {
	failure := &command.FailedError{
		Command: "Chocolatey's installer", ExitCode: output.ExitCode, Stdout: output.Stdout, Stderr: output.Stderr,
	}
	what := "run " + s.url + " on the node"
	if output.ExitCode == noDownload {
		what = "download " + s.url + " from the node"
	}
	err := fmt.Errorf("%s: %w; the node itself needs the internet for this (a proxy is taken from its system "+
		"settings): "+
		"give it access, install Chocolatey on it by other means (%s must exist), or take chocoPackages out of the "+
		"node file",
		what, failure, defaultChocolatey+`\bin\choco.exe`)
	if output.ExitCode == noDownload {
		return &DownloadError{err}
	}
	return err
}

// DownloadError reports a file that the node could not download. Another attempt may succeed.
type DownloadError struct{ Err error }

func (e *DownloadError) Error() string { return e.Err.Error() }
func (e *DownloadError) Unwrap() error { return e.Err }

// installerScript returns a script that fetches and runs Chocolatey's published script. Older
// versions of .NET would offer TLS 1.0, which the site refuses. So this script enables TLS 1.2 and,
// if .NET supports it, TLS 1.3. The published script expects PowerShell's default of continuing
// after an error, so this script restores that default.
func installerScript(url string) string {
	return `[System.Net.ServicePointManager]::SecurityProtocol = [System.Net.SecurityProtocolType]::Tls12
try { [System.Net.ServicePointManager]::SecurityProtocol = ` +
		`[System.Net.ServicePointManager]::SecurityProtocol -bor 12288 } catch { }
$client = New-Object System.Net.WebClient
if ($client.Proxy) { $client.Proxy.Credentials = [System.Net.CredentialCache]::DefaultNetworkCredentials }
try { $installer = $client.DownloadString(` + powershell.Quote(url) + `) }
catch { [Console]::Error.WriteLine($_.Exception.GetBaseException().Message); exit ` + strconv.Itoa(noDownload) + ` }
$ErrorActionPreference = 'Continue'
Invoke-Expression $installer
`
}

// chocoPackage installs one package, in a given version if the node file has one.
type chocoPackage struct {
	node          *node.Node
	choco         *chocolatey
	name, version string
}

func (s *chocoPackage) Name() string { return "package " + s.name }

// Needs prevents the installation of a package if Chocolatey could not be installed.
func (s *chocoPackage) Needs() []string { return []string{chocolateyStep} }

func (s *chocoPackage) Plan(ctx context.Context) (plan.Change, error) {
	installed, err := s.choco.packages(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	version, ok := installed[strings.ToLower(s.name)]
	switch {
	case !ok && s.version == "":
		return plan.Change{Needed: true, Summary: "install " + s.name}, nil
	case !ok:
		return plan.Change{Needed: true, Summary: "install " + s.name + " " + s.version}, nil
	case s.version != "" && !sameVersion(version, s.version):
		return plan.Change{Needed: true, Summary: fmt.Sprintf("change %s from %s to %s", s.name, version, s.version)},
			nil
	}
	return plan.Change{Summary: version + " is installed"}, nil
}

func (s *chocoPackage) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	path, found, err := s.choco.executable(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if !found {
		return plan.Outcome{}, fmt.Errorf("install %s: %s does not exist", s.name, path)
	}
	installed, err := s.choco.packages(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	defer s.choco.forget()
	_, present := installed[strings.ToLower(s.name)]
	output, err := run(ctx, s.node, path, s.arguments(present), 0, 1641, 3010)
	if err != nil {
		return plan.Outcome{}, fmt.Errorf("install %s: %w; choco's log on the node is %s\\logs\\chocolatey.log", s.name,
			err, strings.TrimSuffix(path, `\bin\choco.exe`))
	}
	r.Debug("%s", strings.TrimSpace(output.Stdout))
	// Exit code 3010 means that a reboot is needed, and 1641 that the installer has begun a reboot.
	return plan.Outcome{RebootRequired: output.ExitCode != 0}, nil
}

// arguments returns choco's arguments that install a package or, if present is true, change the
// version of the installed package: choco install would leave that package unchanged.
func (s *chocoPackage) arguments(present bool) []string {
	arguments := []string{"install", s.name}
	if present {
		arguments[0] = "upgrade"
	}
	if s.version != "" {
		arguments = append(arguments, "--version", s.version)
	}
	arguments = append(arguments, "-y", "--no-progress", "--limit-output")
	if present {
		arguments = append(arguments, "--allow-downgrade")
	}
	return arguments
}

// sameVersion reports whether two versions are equal according to NuGet: 1.2 equals 1.2.0, and
// case does not matter.
func sameVersion(a, b string) bool {
	return canonicalVersion(a) == canonicalVersion(b)
}

func canonicalVersion(version string) string {
	version, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(version)), "+") // build metadata
	numbers, label, hasLabel := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(numbers, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != "" {
			parts[i] = trimmed
		} else {
			parts[i] = "0"
		}
	}
	for len(parts) > 1 && parts[len(parts)-1] == "0" {
		parts = parts[:len(parts)-1]
	}
	if hasLabel {
		return strings.Join(parts, ".") + "-" + label
	}
	return strings.Join(parts, ".")
}

// run runs a program on the node. It returns a *command.FailedError if the exit code is not
// in good.
func run(ctx context.Context, n *node.Node, path string, arguments []string, good ...int) (script.Output, error) {
	var stdout, stderr strings.Builder
	code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{Path: path, Args: arguments},
		command.Streams{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return script.Output{}, err
	}
	output := script.Output{ExitCode: code, Stdout: stdout.String(), Stderr: stderr.String()}
	for _, accepted := range good {
		if code == accepted {
			return output, nil
		}
	}
	return output, &command.FailedError{
		Command: "choco " + strings.Join(arguments, " "), ExitCode: code, Stdout: output.Stdout, Stderr: output.Stderr,
	}
}
