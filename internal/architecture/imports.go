package architecture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

const module = "github.com/swdt-dev/swdt/"

// Imports returns, for each package of the module, the packages of the module that it imports when
// built for linux or for windows, without the imports of tests. All paths are within the module.
func Imports(ctx context.Context) (map[string]map[string]bool, error) {
	all := map[string]map[string]bool{}
	for _, system := range []string{"linux", "windows"} {
		if err := list(ctx, system, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func list(ctx context.Context, system string, all map[string]map[string]bool) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Imports", module+"...")
	cmd.Env = append(cmd.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the packages for %s: %w", system, err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the list of packages for %s: %w", system, err)
		}
		path := strings.TrimPrefix(p.ImportPath, module)
		if all[path] == nil {
			all[path] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			if own, ok := strings.CutPrefix(imported, module); ok {
				all[path][own] = true
			}
		}
	}
}

// Arrows returns, for each room, the other rooms whose packages the room's packages import.
func Arrows(imports map[string]map[string]bool) map[string]map[string]bool {
	rooms := map[string]map[string]bool{}
	for from, all := range imports {
		a := RoomOf(from)
		if rooms[a] == nil {
			rooms[a] = map[string]bool{}
		}
		for imported := range all {
			if b := RoomOf(imported); b != a {
				rooms[a][b] = true
			}
		}
	}
	return rooms
}
