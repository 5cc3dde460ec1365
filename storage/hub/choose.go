package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/storage/store"
)

// variant is a model of a repository: a GGUF file, or all parts of a split one.
type variant struct {
	stem  string // the file's name without its folder, part number and .gguf
	tag   string // the quantisation that the stem ends in, else the stem
	count int    // how many parts the file names announce
	parts []published
	at    []int // number of each of parts, from 1
}

var (
	partName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})$`)
	// quantisation matches the end of a file's name, such as -Q4_K_M, .IQ2_XXS, -UD-Q4_K_XL or _bf16.
	quantisation = regexp.MustCompile(`(?i)(?:^|[-._])((?:UD-)?(?:I?Q\d_[0-9A-Z_]+|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|F16|F32))$`)
	// importance matches importance matrices, which are GGUF files beside models.
	importance = regexp.MustCompile(`(?i)imatrix`)
	// adapter matches files that by their names change another model (LoRA), such as lora-f16 or ggml-adapter-model.
	adapter = regexp.MustCompile(`(?i)(^|[-._])(lora|adapter)([-._]|$)`)
)

// base returns a file's name without its folders.
func base(p string) string { return path.Base(p) }

// variants finds the models among the files of a repository, in the files' order.
func variants(files []published) []*variant {
	var all []*variant
	byPlace := map[string]*variant{}
	for _, f := range files {
		stem, isModel := strings.CutSuffix(base(f.path), ".gguf")
		if !isModel || IsProjector(f.path) || importance.MatchString(stem) {
			continue
		}
		number, count := 1, 1
		if m := partName.FindStringSubmatch(stem); m != nil {
			stem = m[1]
			number, _ = strconv.Atoi(m[2])
			count, _ = strconv.Atoi(m[3])
		}
		key := fmt.Sprintf("%s/%s/%d", path.Dir(f.path), stem, count)
		v := byPlace[key]
		if v == nil {
			v = &variant{stem: stem, tag: stem, count: count}
			if m := quantisation.FindStringSubmatch(stem); m != nil {
				v.tag = strings.ToUpper(m[1])
			}
			byPlace[key] = v
			all = append(all, v)
		}
		v.parts, v.at = append(v.parts, f), append(v.at, number)
	}
	return all
}

// withoutAdapters leaves out adapters, but where there is nothing else: the name of a model that an adapter was merged
// into may say so too.
func withoutAdapters(all []*variant) []*variant {
	models := slices.DeleteFunc(slices.Clone(all), func(v *variant) bool { return adapter.MatchString(v.stem) })
	if len(models) == 0 {
		return all
	}
	return models
}

// choose returns the files of the model that a name means, in the order of its parts, and the tag of its full name.
// It fails if no model fits, or several do.
func choose(files []published, n store.Name) (tag string, chosen []published, err error) {
	all := withoutAdapters(variants(files))
	if folder := folderOf(files); folder != nil && (len(all) == 0 || strings.EqualFold(n.Tag, folderTag)) {
		if n.Tag != "" && !strings.EqualFold(n.Tag, "latest") && !strings.EqualFold(n.Tag, folderTag) {
			return "", nil, fmt.Errorf("there is no %s: there is no GGUF file, only a folder of safetensors", n.Tag)
		}
		return folderTag, folder, shardsOf(folder)
	}
	if len(all) == 0 {
		return "", nil, fmt.Errorf("there is no GGUF file among its %d files: look for a model with GGUF in its name", len(files))
	}
	var fits []*variant
	if n.Tag != "" && !strings.EqualFold(n.Tag, "latest") {
		fits = matching(all, n.Tag)
	} else {
		tags := tagsOf(all)
		fits = matching(all, tags[store.Prefer(tags)])
	}
	switch len(fits) {
	case 0:
		return "", nil, fmt.Errorf("there is no %s: there are %s", n.Tag, several(tagsOf(all)))
	case 1:
	default:
		stems := make([]string, len(fits))
		for i, v := range fits {
			stems[i] = v.stem
		}
		return "", nil, fmt.Errorf("several files are %s: name one of them after the colon: %s", fits[0].tag, several(stems))
	}
	v := fits[0]
	if n.Tag != "" && !strings.EqualFold(n.Tag, v.tag) && !strings.EqualFold(n.Tag, "latest") {
		v.tag = v.stem
	}
	chosen, err = v.inOrder()
	return v.tag, chosen, err
}

// projectors are types of numbers of projectors, those that are taken first before others: halves are small, and lose
// nothing that counts.
var projectors = []string{"F16", "BF16", "Q8_0", "F32"}

// IsProjector says whether a file's name is that of an mmproj file, by which a model sees.
func IsProjector(path string) bool { return strings.HasPrefix(strings.ToLower(base(path)), "mmproj") }

// Projector is the index of the mmproj file that is taken among the paths of files; −1: there is none.
func Projector(paths []string) int {
	best, least := -1, len(projectors)+1
	for i, p := range paths {
		stem, ok := strings.CutSuffix(strings.ToUpper(base(p)), ".GGUF")
		if !ok || !IsProjector(p) {
			continue
		}
		rank := len(projectors)
		if m := quantisation.FindStringSubmatch(stem); m != nil && slices.Contains(projectors, m[1]) {
			rank = slices.Index(projectors, m[1])
		}
		if rank < least {
			best, least = i, rank
		}
	}
	return best
}

// Variant is one of the models among the files of a folder: a GGUF file, or all parts of a split one.
type Variant struct {
	Stem  string // the file's name without its folder, part number and .gguf
	Tag   string // the quantisation that the stem ends in, else the stem
	Parts []string
	Err   error // a part is missing, or there twice; or nil
}

// Variants finds the models among the paths of files, as a pull does among those of a repository: adapters and what is
// no model by itself are left out.
func Variants(paths []string) (all []Variant) {
	files := make([]published, len(paths))
	for i, p := range paths {
		files[i] = published{path: p}
	}
	for _, v := range withoutAdapters(variants(files)) {
		one := Variant{Stem: v.stem, Tag: v.tag}
		if len(v.parts) != v.count {
			one.Err = fmt.Errorf("%d of %d parts are there", len(v.parts), v.count)
		} else if parts, err := v.inOrder(); err != nil {
			one.Err = err
		} else {
			for _, f := range parts {
				one.Parts = append(one.Parts, f.path)
			}
		}
		all = append(all, one)
	}
	return all
}

// matching returns the variants of a tag: those of that quantisation, else the one of that file name.
func matching(all []*variant, tag string) (fits []*variant) {
	for _, v := range all {
		if strings.EqualFold(v.tag, tag) {
			fits = append(fits, v)
		}
	}
	for _, v := range all {
		file := partName.ReplaceAllString(tag, "$1")
		if len(fits) == 0 && strings.EqualFold(v.stem, file) {
			return []*variant{v}
		}
	}
	return fits
}

// tagsOf lists the tags of variants without repetition.
func tagsOf(all []*variant) (tags []string) {
	for _, v := range all {
		if !slices.Contains(tags, v.tag) {
			tags = append(tags, v.tag)
		}
	}
	return tags
}

// several joins names for an error message, at most 30 of them.
func several(names []string) string {
	const most = 30
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// inOrder returns the parts in order. It fails if one is missing or repeated.
func (v *variant) inOrder() ([]published, error) {
	parts := make([]published, v.count)
	for i, f := range v.parts {
		at := v.at[i]
		if at < 1 || at > v.count || parts[at-1].path != "" {
			return nil, fmt.Errorf("%s: part %d of %d is there twice, or should not be", f.path, at, v.count)
		}
		parts[at-1] = f
	}
	for i, f := range parts {
		if f.path == "" {
			return nil, fmt.Errorf("%s: part %d of %d is not on the hub", v.stem, i+1, v.count)
		}
	}
	return parts, nil
}
