package system

import "path/filepath"

// Home is the home folder of a person, by the variables of their environment; empty, if there is none.
func Home(lookup func(string) (string, bool)) string {
	for _, variable := range []string{"HOME", "USERPROFILE"} { // the latter on Windows
		if dir, ok := lookup(variable); ok && dir != "" {
			return dir
		}
	}
	return ""
}

// DataFolder is the folder for what programs keep for a person: that of the XDG specification, on Windows that of
// LOCALAPPDATA; empty, if there is none.
func DataFolder(lookup func(string) (string, bool)) string {
	return folder(lookup, []string{"XDG_DATA_HOME", "LOCALAPPDATA"}, ".local", "share")
}

// ConfigFolder is the folder for settings of a person's programs: that of the XDG specification, on Windows that of
// APPDATA; empty, if there is none.
func ConfigFolder(lookup func(string) (string, bool)) string {
	return folder(lookup, []string{"XDG_CONFIG_HOME", "APPDATA"}, ".config")
}

// folder is the first of some variables that is an absolute path, as the XDG specification wants it, else a folder of
// the home.
func folder(lookup func(string) (string, bool), variables []string, usual ...string) string {
	for _, variable := range variables {
		if dir, ok := lookup(variable); ok && filepath.IsAbs(dir) {
			return dir
		}
	}
	if home := Home(lookup); home != "" {
		return filepath.Join(append([]string{home}, usual...)...)
	}
	return ""
}
