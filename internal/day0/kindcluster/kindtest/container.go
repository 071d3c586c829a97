package kindtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/exec"
)

// container is a container of a cluster. Its files and images are in the folder of its Kind.
type container struct {
	kind *Kind
	name string
}

func (c container) String() string             { return c.name }
func (container) Role() (string, error)        { return "control-plane", nil }
func (container) IP() (v4, v6 string, _ error) { return "172.18.0.2", "", nil }
func (container) SerialLogs(io.Writer) error   { return nil }
func (c container) Command(p string, a ...string) exec.Cmd {
	return &command{container: c, args: append([]string{p}, a...), stdin: strings.NewReader(""), stdout: io.Discard}
}

// CommandContext ignores the context, since every simulated command ends at once.
func (c container) CommandContext(_ context.Context, p string, a ...string) exec.Cmd {
	return c.Command(p, a...)
}

// path returns the path on this machine of a file of the container, or of the file that stands for an
// image.
func (c container) path(of ...string) string {
	name := strings.NewReplacer("/", "_", ":", "_").Replace(strings.Join(of, " "))
	return filepath.Join(c.kind.Folder, files, c.name, name)
}

// command simulates a command in a container. It supports only the commands that swdt and kind's
// library run.
type command struct {
	container container
	args      []string
	stdin     io.Reader
	stdout    io.Writer
}

func (c *command) SetEnv(...string) exec.Cmd      { return c }
func (c *command) SetStdin(r io.Reader) exec.Cmd  { c.stdin = r; return c }
func (c *command) SetStdout(w io.Writer) exec.Cmd { c.stdout = w; return c }
func (c *command) SetStderr(io.Writer) exec.Cmd   { return c }
func (c *command) last() string                   { return c.args[len(c.args)-1] }

func (c *command) Run() error {
	switch c.args[0] {
	case "mkdir":
		return nil
	case "cat":
		return c.print(c.container.path(c.last()))
	case "cp":
		return c.store(c.container.path(c.last()), c.stdin)
	case "rm":
		return os.Remove(c.container.path(c.last()))
	case "containerd":
		plugin := "io.containerd.cri.v1.images"
		if c.container.kind.NoMirrors { // as containerd 1 does
			plugin = "io.containerd.grpc.v1.cri"
		}
		_, err := fmt.Fprintf(c.stdout, "version = 3\n[plugins.'%[1]s']\nsnapshotter = 'overlayfs'\n"+
			"[plugins.'%[1]s'.registry]\nconfig_path = ''\n", plugin)
		return err
	case "sh": // runs the script connect of package kindcluster, which prints curl's exit code
		code := 0
		if slices.Contains(c.container.kind.Dead, strings.TrimSuffix(c.last(), "/")) {
			code = 7
		}
		_, err := fmt.Fprintln(c.stdout, code)
		return err
	case "crictl":
		return c.print(c.container.path("image", c.last()))
	case "ctr":
		return c.importImage()
	}
	return fmt.Errorf("the simulated container has no %s", c.args[0])
}

// print prints a file.
func (c *command) print(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = c.stdout.Write(text)
	}
	return err
}

func (c *command) store(path string, text io.Reader) error {
	all, err := io.ReadAll(text)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, all, 0o600)
}

// importImage reads an archive that SaveImage has written, and stores the image in the form in which
// crictl prints it.
func (c *command) importImage() error {
	archive, err := io.ReadAll(c.stdin)
	if err != nil {
		return err
	}
	name, id, ok := strings.Cut(string(archive), " ")
	if !ok {
		return errors.New("the simulated archive is empty")
	}
	if c.container.kind.OtherIDs {
		id += "0"
	}
	return c.store(c.container.path("image", name), bytes.NewReader(fmt.Appendf(nil, `{"status": {"id": %q}}`, id)))
}
