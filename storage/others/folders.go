package others

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/hub"
)

// deepest is how many folders deep files are looked for in a repository's.
const deepest = 6

// lmStudio finds the models of a folder of LM Studio's: PUBLISHER/REPOSITORY/FILE.gguf.
func lmStudio(root string) (all []Model) {
	var repositories []string
	files := map[string][]string{}
	for _, rel := range below(root, deepest, mostEntries) {
		repository := strings.Join(firstTwo(path.Dir(rel)), "/")
		if files[repository] == nil {
			repositories = append(repositories, repository)
		}
		files[repository] = append(files[repository], rel)
	}
	for _, repository := range repositories {
		all = append(all, among(root, root, files[repository], Model{Program: "LM Studio", repository: repository})...)
	}
	return named(lmStudioPrefix, all)
}

// firstTwo returns the first two parts of a path.
func firstTwo(p string) []string {
	parts := strings.Split(p, "/")
	return parts[:min(2, len(parts))]
}

// huggingFace finds the models of a cache of Hugging Face's: models--OWNER--NAME/snapshots/REVISION/FILE.gguf.
func huggingFace(root string) (all []Model) {
	entries, _ := os.ReadDir(root) // a folder that cannot be read has no models
	for _, entry := range entries[:min(len(entries), mostEntries)] {
		repository, ok := strings.CutPrefix(entry.Name(), "models--")
		if !ok || repository == "" || !entry.IsDir() {
			continue
		}
		folder := filepath.Join(root, entry.Name())
		kind := Model{Program: "Hugging Face cache", repository: strings.Replace(repository, "--", "/", 1)}
		var found []Model
		for _, snapshot := range snapshots(folder) {
			for _, m := range among(root, snapshot, below(snapshot, deepest, mostEntries), kind) {
				same := func(o Model) bool { return o.stem == m.stem && (o.Damage == nil || m.Damage != nil) }
				if !slices.ContainsFunc(found, same) {
					found = slices.DeleteFunc(found, func(o Model) bool { return o.stem == m.stem })
					found = append(found, m)
				}
			}
		}
		all = append(all, found...)
	}
	return named(hubPrefix, all)
}

// mostSnapshots bounds how many revisions of a repository are looked at.
const mostSnapshots = 64

// snapshots lists the folders of a repository's revisions: that of main first, then the newest.
func snapshots(folder string) (all []string) {
	main := ""
	if f, _, err := safefile.Open(filepath.Join(folder, "refs", "main")); err == nil {
		const most = 256 // bytes of a revision
		text, _ := safefile.ReadAll(f, most)
		main = strings.TrimSpace(string(text))
		f.Close()
	}
	entries, _ := os.ReadDir(filepath.Join(folder, "snapshots"))
	entries = slices.DeleteFunc(entries, func(d fs.DirEntry) bool { return !d.IsDir() })
	age := func(d fs.DirEntry) (isMain int, newest int64) {
		if info, err := d.Info(); err == nil {
			newest = -info.ModTime().UnixNano()
		}
		if d.Name() == main {
			isMain = -1
		}
		return isMain, newest
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int {
		mainA, newestA := age(a)
		mainB, newestB := age(b)
		return cmp.Or(cmp.Compare(mainA, mainB), cmp.Compare(newestA, newestB))
	})
	for _, d := range entries[:min(len(entries), mostSnapshots)] {
		all = append(all, filepath.Join(folder, "snapshots", d.Name()))
	}
	return all
}

// among finds the models among the files of a folder, whose links must stay in root. kind has what they share.
func among(root, folder string, files []string, kind Model) (all []Model) {
	for _, v := range hub.Variants(files) {
		m := kind
		m.stem, m.tag, m.Damage = v.Stem, v.Tag, v.Err
		for i, part := range v.Parts {
			at := filepath.Join(folder, filepath.FromSlash(part))
			info, err := inside(root, at)
			if err != nil {
				m.Damage = err
				break
			}
			if i == 0 {
				m.Path = at
			}
			m.Size += info.Size()
		}
		all = append(all, m)
	}
	return all
}

// named gives models that are files their names: PREFIX:REPOSITORY:QUANTISATION, or the file in place of the
// quantisation where a repository has several of one. A file that lies in no repository has its own name.
func named(prefix string, all []Model) []Model {
	count := map[[2]string]int{}
	for i := range all {
		count[[2]string{all[i].repository, all[i].tag}]++
	}
	for i := range all {
		m := &all[i]
		last := m.tag
		if count[[2]string{m.repository, m.tag}] > 1 {
			last = m.stem
		}
		if m.Name = prefix + m.repository + ":" + last; m.repository == "." {
			m.Name = prefix + m.stem
		}
	}
	return all
}
