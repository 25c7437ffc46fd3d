export const root: string;
export const packages: string[];
