package env

import "path/filepath"

// Home is the person's home folder; empty, if there is none.
func (e *Env) Home() string {
	for _, variable := range []string{"HOME", "USERPROFILE"} { // the latter on Windows
		if dir, ok := e.Lookup(variable); ok && dir != "" {
			return dir
		}
	}
	return ""
}

// DataFolder is the folder for what programs keep for this person: that of the XDG specification, on Windows that of
// LOCALAPPDATA; empty, if there is none.
func (e *Env) DataFolder() string {
	return e.folder([]string{"XDG_DATA_HOME", "LOCALAPPDATA"}, ".local", "share")
}

// ConfigFolder is the folder for settings of this person's programs: that of the XDG specification, on Windows that of
// APPDATA; empty, if there is none.
func (e *Env) ConfigFolder() string {
	return e.folder([]string{"XDG_CONFIG_HOME", "APPDATA"}, ".config")
}

// folder is the first of some variables that is an absolute path, as the XDG specification wants it, else a folder of
// the home.
func (e *Env) folder(variables []string, usual ...string) string {
	for _, variable := range variables {
		if dir, ok := e.Lookup(variable); ok && filepath.IsAbs(dir) {
			return dir
		}
	}
	if home := e.Home(); home != "" {
		return filepath.Join(append([]string{home}, usual...)...)
	}
	return ""
}
