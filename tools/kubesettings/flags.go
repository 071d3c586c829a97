package main

import (
	"fmt"
	"go/ast"
	"strings"
)

// The states of a flag.
const (
	flagKnown      = "known"
	flagDeprecated = "deprecated" // it works, and the program logs a line
)

// flagFolders returns the packages that define the flags of a program.
func flagFolders(program string) []string {
	common := []string{baseModule + "/logs/api/v1", baseModule + "/version/verflag"}
	if program == "kubelet" {
		// Up to 1.34, pkg/kubelet/config has some of kubelet's flags.
		return append(common, kubernetesModule+"/cmd/kubelet/app/options", kubernetesModule+"/pkg/kubelet/config")
	}
	return append(common, kubernetesModule+"/cmd/kube-proxy/app")
}

// flags returns the flags of a program with their states.
func flags(s *source, program string) (map[string]string, error) {
	all := map[string]string{"help": flagKnown, "h": flagKnown} // of spf13/cobra
	for _, folder := range flagFolders(program) {
		files, err := s.parseFolder(folder)
		if err != nil {
			return nil, err
		}
		names := constants(files)
		for _, f := range files {
			for _, d := range f.Decls {
				if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
					flagsOf(function, names, all)
				}
			}
		}
	}
	const fewest = 40
	if len(all) < fewest {
		return nil, fmt.Errorf("%s has %d flags, fewer than %d", program, len(all), fewest)
	}
	return all, nil
}

// flagsOf adds the flags that a function defines. AddKubeletConfigFlags deprecates all of its flags in a loop.
func flagsOf(function *ast.FuncDecl, names map[string]string, all map[string]string) {
	state := flagKnown
	if function.Name.Name == "AddKubeletConfigFlags" {
		state = flagDeprecated
	}
	ast.Inspect(function.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method := identifier(call.Fun)
		if !isFlagSet(call.Fun) {
			return true
		}
		switch {
		case method == "MarkDeprecated" && len(call.Args) == 2:
			if name, ok := textOf(call.Args[0], names); ok {
				all[name] = flagDeprecated
			}
		case (strings.HasSuffix(method, "Var") || strings.HasSuffix(method, "VarP")) && len(call.Args) > 2:
			if name, ok := textOf(call.Args[1], names); ok {
				all[name] = state
			}
			if short, ok := textOf(call.Args[2], names); ok && strings.HasSuffix(method, "VarP") {
				all[short] = state
			}
		case method == "AddFlag" && len(call.Args) == 1: // fs.AddFlag(flag.Lookup(versionFlagName))
			if lookup, isCall := call.Args[0].(*ast.CallExpr); isCall && len(lookup.Args) == 1 {
				if name, ok := textOf(lookup.Args[0], names); ok {
					all[name] = state
				}
			}
		}
		return true
	})
}

// isFlagSet reports whether a call is a method of a variable that is named as sets of flags are in Kubernetes.
func isFlagSet(function ast.Expr) bool {
	selector, ok := function.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	switch identifier(selector.X) {
	case "fs", "mainfs", "FlagSet", "local":
		return true
	}
	return false
}

// textOf returns a string literal, or the value of a constant.
func textOf(e ast.Expr, names map[string]string) (string, bool) {
	if text, ok := literalText(e); ok {
		return text, true
	}
	text, ok := names[identifier(e)]
	return text, ok
}
