package winetest

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"slices"
)

// Where the parts of forwarder's file lie, in bytes. Sections begin at multiples of alignment, in memory and in the
// file: so offsets into the file and addresses relative to the image are the same numbers.
const (
	alignment = 0x1000
	headers   = 0x40 // of the file format that Windows reads, behind that of DOS
)

// exports is the directory of a library's exports (Microsoft's PE format, "Export Directory Table").
type exports struct {
	Flags, Time                           uint32
	Major, Minor                          uint16
	Name, Base, Functions, Names          uint32
	FunctionTable, NameTable, NumberTable uint32
}

// forwarder returns a library for 64-bit Windows without code: its one function is that of another library, given as
// LIBRARY.FUNCTION.
func forwarder(library, function, target string) []byte {
	directory := exports{Base: 1, Functions: 1, Names: 1}
	tables := uint32(alignment + binary.Size(directory))
	directory.FunctionTable, directory.NameTable, directory.NumberTable = tables, tables+4, tables+8
	directory.Name = tables + 10
	name := directory.Name + uint32(len(library)) + 1
	// The address of a function within the directory is that of the name of another.
	other := name + uint32(len(function)) + 1
	section := slices.Concat(encoded(directory), encoded([]uint32{other, name}), encoded(uint16(0)),
		[]byte(library+"\x00"+function+"\x00"+target+"\x00"))
	length := uint32(len(section))
	section = append(section, make([]byte, alignment-len(section))...)

	optional := pe.OptionalHeader64{Magic: 0x20b, ImageBase: 0x7ff0_0000_0000, SectionAlignment: alignment,
		FileAlignment: alignment, MajorOperatingSystemVersion: 6, MajorSubsystemVersion: 6, SizeOfImage: 2 * alignment,
		SizeOfHeaders: alignment, Subsystem: pe.IMAGE_SUBSYSTEM_WINDOWS_CUI, SizeOfInitializedData: alignment,
		DllCharacteristics:  pe.IMAGE_DLLCHARACTERISTICS_DYNAMIC_BASE | pe.IMAGE_DLLCHARACTERISTICS_NX_COMPAT,
		NumberOfRvaAndSizes: 16}
	optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT] = pe.DataDirectory{VirtualAddress: alignment, Size: length}
	file := pe.FileHeader{Machine: pe.IMAGE_FILE_MACHINE_AMD64, NumberOfSections: 1,
		SizeOfOptionalHeader: uint16(binary.Size(optional)), Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE |
			pe.IMAGE_FILE_DLL | pe.IMAGE_FILE_LARGE_ADDRESS_AWARE}
	table := pe.SectionHeader32{Name: [8]uint8{'.', 'e', 'd', 'a', 't', 'a'}, VirtualSize: length,
		VirtualAddress: alignment, SizeOfRawData: alignment, PointerToRawData: alignment,
		Characteristics: pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ}

	dos := make([]byte, headers)
	copy(dos, "MZ")
	dos[headers-4] = headers // its last field: where the other headers begin
	image := slices.Concat(dos, []byte("PE\x00\x00"), encoded(file), encoded(optional), encoded(table))
	return slices.Concat(image, make([]byte, alignment-len(image)), section)
}

// encoded returns a value of fixed size as it lies in a file.
func encoded(v any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err) // v has no fixed size
	}
	return b.Bytes()
}
