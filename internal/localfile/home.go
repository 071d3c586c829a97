package localfile

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
)

// Home returns the user's home folder, always as an absolute path. This is the folder that the
// environment names or, if that path is not absolute, the folder in the system's user database. A
// relative path would make swdt use files in the current folder, which other users may have
// written, as if they were the user's own.
func Home() (string, error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home, nil
	}
	return accountHome()
}

// CacheFolder returns the user's folder for caches, always an absolute path. Use CacheFolder
// instead of os.UserCacheDir, which fails or returns a relative path if the environment has a
// relative one.
func CacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil && filepath.IsAbs(cache) {
		return cache, nil
	}
	home, homeErr := accountHome()
	if homeErr != nil {
		return "", errors.Join(err, homeErr)
	}
	switch runtime.GOOS {
	case "windows":
		return filepath.Join(home, "AppData", "Local"), nil
	case "darwin":
		return filepath.Join(home, "Library", "Caches"), nil
	}
	return filepath.Join(home, ".cache"), nil
}

// accountHome returns the home folder in the system's user database.
func accountHome() (string, error) {
	account, err := user.Current()
	switch {
	case err != nil:
		return "", fmt.Errorf("find your home folder: %w; set %s to it", err, homeVariable())
	case !filepath.IsAbs(account.HomeDir):
		return "", fmt.Errorf("find your home folder: the account has none; set %s to it", homeVariable())
	}
	return account.HomeDir, nil
}

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// DataFolder returns the user's folder for data that programs keep, always an absolute
// path: $XDG_DATA_HOME if that is an absolute path, else %LOCALAPPDATA% on Windows and
// ~/.local/share on other systems.
func DataFolder() (string, error) {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return data, nil
	}
	if runtime.GOOS == "windows" {
		return CacheFolder() // on Windows, data and caches have the same folder
	}
	home, err := Home()
	return filepath.Join(home, ".local", "share"), err
}

// ConfigFolders returns swdt's folders for your configuration, always absolute paths. The first is the one to write to:
// $XDG_CONFIG_HOME/swdt if that is an absolute path, else %AppData%\swdt on Windows and ~/.config/swdt on other
// systems. The second, if there is one, is ~/.config/swdt, which swdt also reads.
func ConfigFolders() ([]string, error) {
	home, err := Home()
	if err != nil {
		return nil, err
	}
	dotConfig := filepath.Join(home, ".config", "swdt")
	own := dotConfig
	if xdg := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(xdg) {
		own = filepath.Join(xdg, "swdt")
	} else if appData := os.Getenv("AppData"); runtime.GOOS == "windows" && filepath.IsAbs(appData) {
		own = filepath.Join(appData, "swdt")
	}
	return slices.Compact([]string{own, dotConfig}), nil
}
