package wine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Prefix is one simulated Windows machine: a folder with its own drive C:,
// registry, services and processes.
type Prefix struct {
	folder string
	tools  tools
}

// shutdownLimit bounds the end of a prefix, which takes a fraction of a second.
const shutdownLimit = 30 * time.Second

// Prepare makes a prefix in folder, which must be missing or empty.
func Prepare(ctx context.Context, folder string) (*Prefix, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w", err)
	}
	return prepare(ctx, folder, filepath.Join(cache, "swdt", "wine"))
}

func prepare(ctx context.Context, folder, cache string) (*Prefix, error) {
	prefix, err := newPrefix(folder)
	if err != nil {
		return nil, err
	}
	if err := checkEmpty(prefix.folder); err != nil {
		return nil, fmt.Errorf("prepare a Wine prefix: %w", err)
	}
	template, err := template(ctx, prefix.tools, cache)
	if err != nil {
		return nil, fmt.Errorf("prepare a Wine prefix: %w", err)
	}
	if err := copyTree(ctx, template, prefix.folder); err != nil {
		return nil, fmt.Errorf("prepare a Wine prefix in %s: %w", folder, errors.Join(err, os.RemoveAll(prefix.folder)))
	}
	return prefix, nil
}

// Open returns the prefix that Prepare created in folder earlier.
func Open(folder string) (*Prefix, error) {
	prefix, err := newPrefix(folder)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(prefix.DriveC()); err != nil {
		return nil, fmt.Errorf("open Wine prefix %s: %w", folder, err)
	}
	return prefix, nil
}

func newPrefix(folder string) (*Prefix, error) {
	tools, err := findTools()
	if err != nil {
		return nil, err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, fmt.Errorf("find Wine prefix %s: %w", folder, err)
	}
	return &Prefix{folder: absolute, tools: tools}, nil
}

func checkEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty", folder)
	}
	return nil
}

// Folder returns the folder of the prefix, WINEPREFIX.
func (p *Prefix) Folder() string { return p.folder }

// DriveC returns the folder that is C:\.
func (p *Prefix) DriveC() string { return filepath.Join(p.folder, "drive_c") }

// Command returns a command that runs a Windows program in the prefix. exe is the program's Windows
// path or a name that Wine finds. The process is the Windows program itself: killing it has the
// effect of TerminateProcess, and its exit code is the program's, cut to 8 bits. The working
// directory is C:\. The program also gets the environment variables that the caller adds to the
// command's Env.
func (p *Prefix) Command(ctx context.Context, exe string, args ...string) *exec.Cmd {
	line := slices.Concat(p.tools.layout, []string{p.tools.wine, exe}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = p.DriveC()
	cmd.Env = p.environment()
	return cmd
}

// environment returns only the variables that Wine needs: Wine passes its environment on to Windows
// programs, which must not get the secrets in this process's environment.
func (p *Prefix) environment() []string {
	env := []string{
		"WINEPREFIX=" + p.folder,
		"WINEARCH=win64",
		"WINEDEBUG=-all",
		// Wine must not ask about Mono and Gecko, nor add menu entries to the user's desktop.
		"WINEDLLOVERRIDES=mscoree=;mshtml=;winemenubuilder.exe=d",
		"LANG=C.UTF-8",
	}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "PATH", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Path returns the path below drive_c that corresponds to a Windows path (C:\k\kubelet.exe,
// either slash, any case). Parts that do not exist keep their case.
func (p *Prefix) Path(windowsPath string) (string, error) {
	parts := strings.FieldsFunc(windowsPath, func(r rune) bool { return r == '\\' || r == '/' })
	if len(parts) == 0 || !strings.EqualFold(parts[0], "C:") {
		return "", fmt.Errorf("%s is not on drive C: of the Wine prefix", windowsPath)
	}
	var below []string
	for _, part := range parts[1:] {
		switch part {
		case ".":
		case "..":
			below = below[:max(len(below)-1, 0)]
		default:
			below = append(below, part)
		}
	}
	path := p.DriveC()
	for _, part := range below {
		path = filepath.Join(path, actualName(path, part))
	}
	return path, nil
}

// actualName returns the entry of folder that name means on Windows, which ignores case. If there
// is no such entry, it returns name itself.
func actualName(folder, name string) string {
	if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
		return name
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return name
	}
	for _, entry := range entries {
		if strings.EqualFold(entry.Name(), name) {
			return entry.Name()
		}
	}
	return name
}

// Reboot ends every process of the prefix at once, as a power switch does, but the registry is
// written first. The machine boots when the next program starts in it; the Service Control Manager
// then starts the automatic services.
func (p *Prefix) Reboot(ctx context.Context) error {
	if err := p.shutDown(ctx); err != nil {
		return fmt.Errorf("reboot Wine prefix %s: %w", p.folder, err)
	}
	return nil
}

// Close ends every process of the prefix. The folder stays.
func (p *Prefix) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownLimit)
	defer cancel()
	if err := p.shutDown(ctx); err != nil {
		return fmt.Errorf("end Wine prefix %s: %w", p.folder, err)
	}
	return nil
}

func (p *Prefix) shutDown(ctx context.Context) error {
	running := p.processes()
	// The command returns when the server has ended, and fails if no server ran. After that
	// another process may boot the prefix again.
	kill := p.server(ctx, "-k")
	var exit *exec.ExitError
	if err := kill.Run(); err != nil && (ctx.Err() != nil || !errors.As(err, &exit)) {
		return errors.Join(ctx.Err(), err)
	}
	for _, process := range running {
		process.end()
	}
	return nil
}

// awaitServerEnd waits until the prefix's server has ended and written the registry.
func (p *Prefix) awaitServerEnd(ctx context.Context) error {
	if err := p.server(ctx, "-w").Run(); err != nil {
		return fmt.Errorf("wait for wineserver: %w", errors.Join(ctx.Err(), err))
	}
	return nil
}

func (p *Prefix) server(ctx context.Context, flag string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.tools.server, flag)
	cmd.Env = p.environment()
	return cmd
}
