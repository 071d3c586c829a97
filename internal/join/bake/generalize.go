package bake

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/vm/answer"
)

const (
	sysprepExe = sysprepFolder + `\sysprep.exe`
	// answersPath is the answer file of sysprep on the machine. It stays in the image.
	answersPath = sysprepFolder + `\swdt-sysprep.xml`
	// sysprepLimit bounds the work of sysprep, which takes minutes.
	sysprepLimit = 45 * time.Minute
)

// generalize cleans the machine, generalises it, and waits until it has shut down.
func (b *oven) generalize(ctx context.Context) (string, error) {
	answers, err := b.answers()
	if err != nil {
		return "", err
	}
	if answers == nil {
		answers = answer.Sysprep()
	}
	if err := smallfile.Replace(ctx, b.node, answersPath, answers, ""); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, sysprepLimit)
	defer cancel()
	// cmd waits for sysprep only with start /wait, since sysprep is no console program.
	err = b.node.Retire(bounded, b.removeTraces, "start /wait "+sysprepExe+
		" /generalize /oobe /shutdown /mode:vm /quiet /unattend:"+answersPath)
	if err != nil {
		return "", err
	}
	b.reporter.Step("waiting for the VM to shut down")
	return "", b.options.Machines.AwaitStopped(bounded, b.name())
}
