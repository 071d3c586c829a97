package push

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/obtain/source"
)

// obtain returns the binaries of the components, in the order of the components.
func (w *work) obtain(ctx context.Context) (binaries []source.Binary, err error) {
	if err := w.lookAtSources(); err != nil {
		return nil, err
	}
	for _, c := range w.components {
		if variables := config.Variables(c.spec.SourceURL); len(variables) > 0 && strings.Contains(c.spec.SourceURL, "://") {
			w.reporter.Info("the sourceURL of %s sends $%s of your environment to its server", c.spec.Name,
				strings.Join(variables, ", $"))
		}
		begun := time.Now()
		binary, err := w.options.Sources.Obtain(ctx, w.request(c), w.reporter)
		if err != nil {
			return nil, c.fail(err)
		}
		c.result.Seconds.Obtain = time.Since(begun).Seconds()
		c.result.SHA256 = binary.SHA256
		binaries = append(binaries, binary)
	}
	return binaries, nil
}

func (w *work) request(c *component) source.Request { return SourceOf(w.doc, c.spec) }

// SourceOf returns the request for a provisioner's binary. The request demands a Windows executable
// if the name of the destination ends in .exe. In a set of binaries, the provisioner's name selects the
// binary.
func SourceOf(doc config.Document, p v1alpha1.Provisioner) source.Request {
	request := source.Request{
		URL:        doc.Resolve(p.SourceURL),
		SHA256:     p.SHA256,
		Executable: strings.EqualFold(filepath.Ext(p.Destination), ".exe"),
	}
	if source.IsSet(request.URL) {
		request.Component = p.Name
	}
	return request
}

// Ahead reads the binaries on your machine that a push with these options will send, and
// compares them with the binaries that the last push left on the nodes. Callers use it
// while they wait for the connection.
func Ahead(ctx context.Context, documents []config.Document, options Options) {
	begun := map[source.Request]bool{}
	for _, doc := range documents {
		for _, p := range doc.Node.Spec.Kubernetes.Provisioners {
			request := SourceOf(doc, p)
			if len(options.Only) > 0 && !named(options.Only, p.Name) || begun[request] {
				continue
			}
			begun[request] = true
			options.Sources.Ahead(ctx, request, func(binary source.Binary) {
				if options.Depot != nil && !options.DryRun {
					options.Depot.Ahead(ctx, fileOf(p.Name, binary, options.Depot))
				}
			})
		}
	}
}

// SourceProblem is a component of a node file whose local binary cannot be read.
type SourceProblem struct {
	Component string
	config.Problem
	// Builds reports whether the file is missing and the component has a build, which can make the
	// file.
	Builds bool
	err    error
}

func (p *SourceProblem) Error() string { return p.Component + ": " + p.String() }
func (p *SourceProblem) Unwrap() error { return p.err }

// LookAtSources looks for the local binaries of the named components, or of all components if no
// name is given. It returns a problem for each binary that it cannot find. It does not read the
// binaries, and does not check binaries that are downloaded.
func LookAtSources(doc config.Document, only []string) (problems []*SourceProblem) {
	for i, p := range doc.Node.Spec.Kubernetes.Provisioners {
		if len(only) > 0 && !named(only, p.Name) {
			continue
		}
		err := SourceOf(doc, p).Look()
		if err == nil {
			continue
		}
		what, remedy := err.Error(), ""
		var file *source.FileError
		if errors.As(err, &file) {
			what, remedy = file.Path+" "+file.What, file.Remedy
		}
		builds := p.Build != nil && errors.Is(err, fs.ErrNotExist)
		if builds {
			remedy = "run its build with --build, or correct sourceURL"
		}
		field := fmt.Sprintf("spec.kubernetes.provisioners[%d].sourceURL", i)
		problems = append(problems, &SourceProblem{
			Component: p.Name, Problem: doc.Problem(field, what, remedy), Builds: builds, err: err,
		})
	}
	return problems
}

// SourcesError reports every component whose local binary cannot be read.
type SourcesError struct{ Problems []*SourceProblem }

func (e *SourcesError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d components have no binary to push:", len(e.Problems))
	for _, p := range e.Problems {
		text.WriteString("\n  " + p.Error())
	}
	return text.String()
}

// Unwrap makes errors.Is and errors.As inspect every problem.
func (e *SourcesError) Unwrap() []error {
	errs := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		errs[i] = p
	}
	return errs
}

// lookAtSources returns an error that lists all missing local binaries. It runs before the
// first binary is obtained, since obtaining a binary may need a download.
func (w *work) lookAtSources() error {
	problems := LookAtSources(w.doc, w.options.Only)
	if len(problems) == 0 {
		return nil
	}
	for _, c := range w.components {
		for _, p := range problems {
			if p.Component == c.spec.Name {
				c.err = errors.New(p.String())
			}
		}
	}
	return &SourcesError{problems}
}
