// Command site makes the documents a web site, with mkdocs, and checks it.
//
//	site stage FOLDER       writes the sources of the site and mkdocs' configuration
//	site check FOLDER       checks that each link and fragment in the built site leads somewhere
//	site shots FOLDER OUT   opens pages in Chromium in two widths, searches, and takes pictures
//
// It runs at the root of the repository; scripts/site.sh runs all three with mkdocs.
//
// stage.go chooses the files and makes the navigation of docs/README.md, links.go checks, shots.go
// drives the browser.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "stage":
		return stage(".", args[1])
	case len(args) == 2 && args[0] == "check":
		problems, err := check(os.DirFS(args[1]))
		for _, problem := range problems {
			fmt.Println(problem)
		}
		if err == nil && len(problems) > 0 {
			err = fmt.Errorf("%d dead links", len(problems))
		}
		return err
	case len(args) == 3 && args[0] == "shots":
		return shots(ctx, args[1], args[2])
	}
	return errors.New("usage: site stage FOLDER | check FOLDER | shots FOLDER OUT")
}
