package wine

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

//go:embed recipe
var recipe embed.FS

const (
	// recipeVersion must change with the code of build, so that old templates are not used.
	recipeVersion = "4"
	registryFile  = "node.reg"
	lockInterval  = 200 * time.Millisecond
)

// shims returns the DLLs that Wine lacks, or has without the functions that a node needs. Each is
// built from recipe/NAME.c.
func shims() []string {
	return []string{"bcryptprimitives", "pdh", "vmcompute", "computenetwork", "bindfltapi", "rstrtmgr"}
}

// programs returns the programs that a node needs besides the shims, each with its folder below
// system32. Each is built from recipe/NAME.c.
func programs() map[string]string {
	return map[string]string{keeper: "", "dism": "", "netsh": "", "powershell": "WindowsPowerShell/v1.0"}
}

// template returns the folder of the finished template, and creates it if it does not exist yet.
// One process creates it; the other processes wait.
func template(ctx context.Context, tools tools, cache string) (string, error) {
	name, err := recipeName(ctx, tools)
	if err != nil {
		return "", err
	}
	finished := filepath.Join(cache, name)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock := flock.New(finished + ".lock")
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return "", fmt.Errorf("wait for another process that makes the template: %w", err)
	}
	defer lock.Unlock()
	if _, err := os.Stat(finished); err == nil {
		return finished, nil
	}
	unfinished, err := os.MkdirTemp(cache, name+".unfinished-")
	if err != nil {
		return "", err
	}
	prefix := &Prefix{folder: unfinished, tools: tools}
	if err := prefix.build(ctx); err != nil {
		return "", errors.Join(err, prefix.Close(), os.RemoveAll(unfinished))
	}
	// Only a finished template has the final name: a process that is killed before the
	// rename leaves a folder that no process uses.
	return finished, os.Rename(unfinished, finished)
}

// recipeName returns a hash of everything that determines the template's content.
func recipeName(ctx context.Context, tools tools) (string, error) {
	version := exec.CommandContext(ctx, tools.wine, "--version")
	version.Env = append(os.Environ(), "WINEDEBUG=-all")
	printed, err := version.Output()
	if err != nil {
		return "", fmt.Errorf("ask wine for its version: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s", recipeVersion, printed)
	err = fs.WalkDir(recipe, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := recipe.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}

func (p *Prefix) build(ctx context.Context) error {
	if err := p.run(p.Command(ctx, "wineboot", "--init"), p.folder); err != nil {
		return err
	}
	system32, err := p.Path(`C:\windows\system32`)
	if err != nil {
		return err
	}
	if err := p.compile(ctx, system32); err != nil {
		return err
	}
	if err := p.addFiles(); err != nil {
		return err
	}
	if err := p.importRegistry(ctx); err != nil {
		return err
	}
	if err := p.awaitServerEnd(ctx); err != nil {
		return err
	}
	if err := p.slim(ctx, system32); err != nil {
		return err
	}
	return p.cutOff()
}

// slim removes the debug information from Wine's own DLLs, since each prefix has a copy of them:
// 190 MB of 700 MB remain.
func (p *Prefix) slim(ctx context.Context, system32 string) error {
	var images []string
	for _, pattern := range []string{"*.dll", "*.exe", "*.drv", "*.ocx", "*.cpl"} {
		found, err := filepath.Glob(filepath.Join(system32, pattern))
		if err != nil {
			return err
		}
		images = append(images, found...)
	}
	// strip does not know the format of some files. It replaces a file only with a complete
	// one, so its exit code does not matter.
	strip := exec.CommandContext(ctx, p.tools.strip, append([]string{"--strip-debug"}, images...)...)
	var exit *exec.ExitError
	if err := strip.Run(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return ctx.Err()
}

// run runs one step of the recipe. The error contains the step's output.
func (p *Prefix) run(cmd *exec.Cmd, folder string) error {
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}

// compile builds the programs and DLLs that the prefix has in addition to Wine's own.
func (p *Prefix) compile(ctx context.Context, system32 string) error {
	sources := filepath.Join(p.folder, "sources")
	files, err := fs.Sub(recipe, "recipe")
	if err != nil {
		return err
	}
	if err := os.CopyFS(sources, files); err != nil {
		return err
	}
	defer os.RemoveAll(sources)
	for _, shim := range shims() {
		if err := p.run(exec.CommandContext(ctx, p.tools.compiler, "-shared", "-O2", "-s",
			"-o", filepath.Join(system32, shim+".dll"), shim+".c", "-ladvapi32", "-lole32", "-lntdll"),
			sources); err != nil {
			return err
		}
	}
	for name, folder := range programs() {
		if err := p.run(exec.CommandContext(ctx, p.tools.compiler, "-municode", "-O2", "-s",
			"-o", filepath.Join(system32, folder, name+".exe"), name+".c", "-ladvapi32", "-lole32", "-lntdll"),
			sources); err != nil {
			return err
		}
	}
	return nil
}

// addFiles copies recipe/drive_c to drive C:. The folder contains a CNI configuration without a
// plugin, which stands in for the configuration of a cluster's pod network: a node without a CNI
// configuration is never Ready.
func (p *Prefix) addFiles() error {
	files, err := fs.Sub(recipe, "recipe/drive_c")
	if err != nil {
		return err
	}
	return os.CopyFS(p.DriveC(), files)
}

func (p *Prefix) importRegistry(ctx context.Context) error {
	content, err := recipe.ReadFile("recipe/" + registryFile)
	if err != nil {
		return err
	}
	file := filepath.Join(p.DriveC(), registryFile)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	return p.run(p.Command(ctx, "regedit", "/S", `C:\`+registryFile), p.DriveC())
}

// cutOff keeps programs inside the prefix. It removes the drive that leads to / (Wine would
// resolve /var/lib on it), and replaces links into the user's own home, such as Desktop and
// Documents, with folders.
func (p *Prefix) cutOff() error {
	if err := os.Remove(filepath.Join(p.folder, "dosdevices", "z:")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return filepath.WalkDir(filepath.Join(p.DriveC(), "users"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink == 0 {
			return err
		}
		target, err := os.Readlink(path)
		if err != nil || !filepath.IsAbs(target) {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.Mkdir(path, 0o755)
	})
}

// copyTree copies a template with links, modes and times. cp shares the blocks if the file system
// supports that.
func copyTree(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, "cp", "-a", from+"/.", to+"/").CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy the template: %w\n%s", err, output)
	}
	return nil
}
