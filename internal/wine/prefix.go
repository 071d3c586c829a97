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

// Open is the prefix that Prepare made in folder earlier.
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

// Folder is where the prefix is, WINEPREFIX.
func (p *Prefix) Folder() string { return p.folder }

// DriveC is the folder that is C:\.
func (p *Prefix) DriveC() string { return filepath.Join(p.folder, "drive_c") }

// Command is a Windows program, by its Windows path or a name that Wine finds,
// ready to start in the prefix. The process is the Windows program itself:
// killing it is what TerminateProcess is, and its exit code is the program's,
// cut to 8 bits. The working directory is C:\. Environment variables added to
// the command's Env are the program's too.
func (p *Prefix) Command(ctx context.Context, exe string, args ...string) *exec.Cmd {
	line := slices.Concat(p.tools.layout, []string{p.tools.wine, exe}, args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = p.DriveC()
	cmd.Env = p.environment()
	return cmd
}

// environment is all that Wine needs and nothing else: what is in it is handed
// on to Windows programs, and secrets in ours are none of theirs.
func (p *Prefix) environment() []string {
	env := []string{
		"WINEPREFIX=" + p.folder,
		"WINEARCH=win64",
		"WINEDEBUG=-all",
		// No questions about Mono and Gecko, no menu entries in the user's desktop.
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

// Path is where a Windows path (C:\k\kubelet.exe, either slash, any case) is
// below drive_c. What does not exist keeps the case it was given.
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

// actualName is the entry of folder that Windows means by name.
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

// Reboot ends every process of the prefix at once, as a power switch does, but
// with the registry written. The machine boots with the next program started in
// it: then the Service Control Manager starts the services that start by
// themselves.
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
	// It returns when the server has ended, and fails when there was none. From
	// then on somebody else may boot the prefix again.
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

// settle waits until the prefix's server has ended, and the registry is written.
func (p *Prefix) settle(ctx context.Context) error {
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
