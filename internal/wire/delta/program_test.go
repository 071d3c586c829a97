package delta_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/delta"
)

const program = `package main

import (
	"fmt"
	"os"
)

func greet(name string) string {
	return fmt.Sprintf("hello, %s\n", name)
}

func main() {
	fmt.Print(greet(os.Args[0]))
}
`

const programChanged = `package main

import (
	"fmt"
	"os"
)

func greet(name string) string {
	if name == "" {
		fmt.Fprintln(os.Stderr, "nobody is there to be greeted")
		return "hello, whoever you are\n"
	}
	return fmt.Sprintf("hello, %s\n", name)
}

func main() {
	fmt.Print(greet(os.Args[0]))
}
`

// TestRebuiltPrograms makes patches between two builds of real programs.
func TestRebuiltPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	for _, system := range []string{"windows", "linux"} {
		t.Run(system, func(t *testing.T) {
			old, new := build(t, system, program), build(t, system, programChanged)
			for v, limit := range map[delta.Variant]int{delta.Fast: len(new) / 80, delta.Small: len(new) / 120} {
				patch, info := roundTrip(t, old, new, delta.Options{Variant: v})
				if info.Variant != v || len(patch) > limit {
					t.Errorf("the %v patch of %d bytes has %d", info.Variant, len(new), len(patch))
				}
			}
		})
	}
}

func build(t *testing.T, system, source string) []byte {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "main.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, file)
	cmd.Env = append(cmd.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	built, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return built
}
