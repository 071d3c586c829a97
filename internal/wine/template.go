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
	// recipeVersion changes with what build does, so that old templates are not used.
	recipeVersion = "3"
	registryFile  = "node.reg"
	lockInterval  = 200 * time.Millisecond
)

// shims are DLLs that Wine lacks, or has in name only, each built from
// recipe/NAME.c.
func shims() []string {
	return []string{"bcryptprimitives", "pdh", "vmcompute", "computenetwork", "bindfltapi"}
}

// programs are built from recipe/NAME.c too; each with its folder below system32.
func programs() map[string]string {
	return map[string]string{keeper: "", "dism": "", "netsh": "", "powershell": "WindowsPowerShell/v1.0"}
}

// template is the folder of the finished template, which is made if it is not
// there yet. One process makes it, the others wait for that one.
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
	// Finished is what has its final name: a process killed before that leaves
	// a folder that nobody uses.
	return finished, os.Rename(unfinished, finished)
}

// recipeName is a hash of all that decides what the template is.
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
	if err := p.settle(ctx); err != nil {
		return err
	}
	if err := p.slim(ctx, system32); err != nil {
		return err
	}
	return p.cutOff()
}

// slim takes the debug information out of Wine's own DLLs, of which each prefix
// has a copy: 190 MB remain of 700.
func (p *Prefix) slim(ctx context.Context, system32 string) error {
	var images []string
	for _, pattern := range []string{"*.dll", "*.exe", "*.drv", "*.ocx", "*.cpl"} {
		found, err := filepath.Glob(filepath.Join(system32, pattern))
		if err != nil {
			return err
		}
		images = append(images, found...)
	}
	// Some are no files that it knows. It replaces a file only by a whole one, so
	// that its exit code does not matter.
	strip := exec.CommandContext(ctx, p.tools.strip, append([]string{"--strip-debug"}, images...)...)
	var exit *exec.ExitError
	if err := strip.Run(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return ctx.Err()
}

// run runs one step of the recipe; its output is told only when it fails.
func (p *Prefix) run(cmd *exec.Cmd, folder string) error {
	cmd.Dir = folder
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}

// compile builds what the prefix has beside Wine's own.
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
			"-o", filepath.Join(system32, shim+".dll"), shim+".c", "-ladvapi32", "-lole32"), sources); err != nil {
			return err
		}
	}
	for name, folder := range programs() {
		if err := p.run(exec.CommandContext(ctx, p.tools.compiler, "-municode", "-O2", "-s",
			"-o", filepath.Join(system32, folder, name+".exe"), name+".c", "-ladvapi32", "-lole32", "-lntdll"), sources); err != nil {
			return err
		}
	}
	return nil
}

// addFiles puts what is in recipe/drive_c on drive C:. That is a CNI configuration
// with no plugin behind it, as a cluster's own network would bring one: a node
// without any is never Ready.
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

// cutOff keeps programs inside: no drive for / (Wine would take /var/lib to be
// there), and no Desktop and Documents that are those of the user's own home.
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

// copyTree copies a template with links, modes and times. cp shares the blocks
// where the file system can.
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
