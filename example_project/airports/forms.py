"""The upload form."""

from __future__ import annotations

from django import forms
from django.core.files.uploadedfile import UploadedFile

from airports.csv_files import BadFileError, check_file


class UploadForm(forms.Form):
    """A CSV file, and whether to show a failure beside it."""

    file = forms.FileField(
        label="CSV file",
        help_text="Needs the columns name, lat and lon; best also country and tz.",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )
    has_corrupted_copy = forms.BooleanField(
        label="Also try a corrupted copy of one chunk, to see retries and a dead letter",
        required=False,
    )

    def clean_file(self) -> UploadedFile[bytes]:
        """Refuse at once what no job could import."""
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        try:
            check_file(file)
        except BadFileError as error:
            raise forms.ValidationError(str(error)) from None
        return file
